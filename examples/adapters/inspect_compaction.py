"""The compaction of Inspect as a strategy.

Library   inspect_ai 0.3.285, `inspect_ai.model.compaction` with `CompactionEdit`, `CompactionTrim` or `CompactionSummary`
Run       proctor run sessions/ --strategy-cmd 'python3 inspect_compaction.py edit --threshold 100000'

edit
  --keep           newest tool uses that stay (3)
  --clear-inputs   calls go with their results
  --exclude        names of tools whose results stay, by comma (none)
trim
  --preserve       part of the messages behind the task that stays (0.8)
summary
  --instructions   is added to Inspect's prompt (none)
  --max-tokens     the longest summary that is asked for (2000)
  --model          the model that is asked (the agent's)
all
  --threshold      tokens, or up to 1 a part of the window (0.9)
  --counter        `o200k`: tiktoken and ten per cent, as Inspect counts; it fetches a file at first. `approximate`: a quarter
                   of the characters (o200k)

What is called is `compact_input`, as Inspect's agents do before each call, and by force where a prompt was refused. The first
messages up to the user's are the task. Where Inspect would end the run, nothing is changed. Lost on the way: thinking blocks;
the usage that a provider reports, by which Inspect corrects its own count.
"""

import argparse

from inspect_ai.model import (
    ChatCompletionChoice, ChatMessageAssistant, ChatMessageSystem, CompactionEdit, CompactionSummary, CompactionTrim,
    GenerateConfig, ModelAPI, ModelInfo, ModelOutput, compaction, get_model, messages_from_openai, messages_to_openai,
    modelapi, set_model_info)
from inspect_ai.tool import ToolInfo, ToolParams

from proctor_strategy import AskFailed, Strategy, run

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("strategy", choices=["edit", "trim", "summary"])
options.add_argument("--keep", type=int, default=3)
options.add_argument("--clear-inputs", action="store_true")
options.add_argument("--exclude", default="")
options.add_argument("--preserve", type=float, default=0.8)
options.add_argument("--instructions")
options.add_argument("--max-tokens", type=int, default=2000)
options.add_argument("--model")
options.add_argument("--threshold", type=float, default=0.9)
options.add_argument("--counter", choices=["o200k", "approximate"], default="o200k")
options = options.parse_args()

threshold = options.threshold if options.threshold <= 1 else int(options.threshold)
chosen = {
    "edit": lambda: CompactionEdit(
        threshold=threshold, keep_tool_uses=options.keep, keep_tool_inputs=not options.clear_inputs,
        exclude_tools=list(filter(None, options.exclude.split(",")))),
    "trim": lambda: CompactionTrim(threshold=threshold, preserve=options.preserve),
    "summary": lambda: CompactionSummary(threshold=threshold, instructions=options.instructions),
}[options.strategy]()


class Proctor(ModelAPI):
    """A model that is asked through Proctor."""

    ask: object = None

    async def count_text_tokens(self, text):
        return max(1, len(text) // 4) if options.counter == "approximate" else await super().count_text_tokens(text)

    async def generate(self, input, tools, tool_choice, config):
        more = {"model": options.model} if options.model else {}
        try:
            text = await self.ask(await messages_to_openai(input), max_tokens=options.max_tokens, **more)
        except AskFailed as error:
            if error.kind != "too_long":
                raise
            return ModelOutput(model=self.model_name, choices=[ChatCompletionChoice(
                message=ChatMessageAssistant(content=""), stop_reason="model_length")])
        return ModelOutput.from_content(self.model_name, text)


modelapi(name="proctor")(Proctor)
model = get_model("proctor/model", config=GenerateConfig(max_tokens=options.max_tokens))


def tool_of(tool):
    schema = tool.get("input_schema") or {}
    return ToolInfo(name=tool["name"], description=tool.get("description") or "", parameters=ToolParams.model_construct(
        properties=schema.get("properties") or {}, required=schema.get("required") or []))


class Compaction(Strategy):
    history, shape, name = "full", "openai", "inspect_compaction"
    kind = {"edit": "clear", "trim": "window", "summary": "summarise"}[options.strategy]

    def start(self, session):
        set_model_info(str(model), ModelInfo(context_length=session.window))
        self.tools = [tool_of(tool) for tool in session.tools]
        self.messages = [ChatMessageSystem(content=session.system)] if session.system else []
        self.places, self.prompt, self.handler = {}, list(self.messages), None

    async def before_call(self, messages, budget, ask):
        return await self.compacted(messages, budget, ask, force=False)

    async def overflow(self, messages, budget, ask):
        return await self.compacted(messages, budget, ask, force=True)

    async def compacted(self, messages, budget, ask, force):
        for place in range(len(self.places), len(messages)):
            new = await messages_from_openai([messages[place]])
            self.places[id(new[0])] = place
            self.messages += new
            self.prompt += new
        if self.handler is None:
            first = next((at for at, message in enumerate(self.messages) if message.role == "user"), len(self.messages))
            self.handler = compaction(chosen, prefix=self.messages[:first + 1], tools=self.tools, model=model)
        model.api.ask = ask
        try:
            self.prompt, _ = await self.handler.compact_input(self.messages, force=force)
        except (AskFailed, RuntimeError) as error:
            budget.reason = str(error)
        new = []
        for message in self.prompt:
            if id(message) in self.places:
                new.append(messages[self.places[id(message)]])
            elif message.role != "system":
                new += await messages_to_openai([message])
        return new


run(Compaction())
