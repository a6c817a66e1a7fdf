"""The compaction of Microsoft Agent Framework as a strategy.

Library   agent-framework-core 1.23.0, `agent_framework.apply_compaction` with one of its strategies
Run       proctor run sessions/ --strategy-cmd 'python3 agent_framework_compaction.py context'

context            `ContextWindowCompactionStrategy`, the default of the framework's harness
  --evict          part of the window from which on old rounds of tools become a line each (0.5)
  --truncate       part of the window from which on the oldest messages go (0.8)
  --keep           newest rounds of tools that stay (4)
results, tools     `ToolResultCompactionStrategy`: older rounds of tools become a line each; `SelectiveToolCallCompactionStrategy`: they go
  --keep           newest rounds of tools that stay (1)
window             `SlidingWindowStrategy`
  --keep           newest groups that stay: a round of tools is one, and so is another message (20)
truncate           `TruncationStrategy`
  --max            messages from which on the oldest go, or tokens with `--tokens` (100)
  --to             what is left then (50)
summarise          `SummarizationStrategy`
  --max            messages from which on the oldest are summarised (6)
  --to             newest messages that stay (4)
  --max-tokens     the longest summary that is asked for (2000)
  --model          the model that is asked (the agent's)

Tokens are the framework's estimate, a quarter of the characters of a serialised message. It marks messages as excluded and
keeps the marks, so one list serves the whole session, as in one run of an agent; the system prompt is in the agent's
instructions, which the framework does not count. A refused prompt stays as it is, as in the framework. Lost on the way:
thinking blocks; images are a line of text.
"""

import argparse
from types import SimpleNamespace

import agent_framework as library

from proctor_strategy import Strategy, run, text_of

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("strategy", choices=["context", "results", "tools", "window", "truncate", "summarise"])
options.add_argument("--evict", type=float, default=0.5)
options.add_argument("--truncate", type=float, default=0.8)
options.add_argument("--keep", type=int)
options.add_argument("--max", type=int)
options.add_argument("--to", type=int)
options.add_argument("--tokens", action="store_true")
options.add_argument("--max-tokens", type=int, default=2000)
options.add_argument("--model")
options = options.parse_args()


def chosen(session, client):
    """The strategy, as an agent would make it."""
    keep = {"context": 4, "window": 20}.get(options.strategy, 1) if options.keep is None else options.keep
    if options.strategy == "context":
        return library.ContextWindowCompactionStrategy(
            max_context_window_tokens=session.window, max_output_tokens=session.window - session.effective,
            tool_eviction_threshold=options.evict, truncation_threshold=options.truncate, keep_last_tool_call_groups=keep)
    if options.strategy == "results":
        return library.ToolResultCompactionStrategy(keep_last_tool_call_groups=keep)
    if options.strategy == "tools":
        return library.SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=keep)
    if options.strategy == "window":
        return library.SlidingWindowStrategy(keep_last_groups=keep)
    if options.strategy == "truncate":
        return library.TruncationStrategy(max_n=options.max or 100, compact_to=options.to or 50,
                                          tokenizer=library.CharacterEstimatorTokenizer() if options.tokens else None)
    to = options.to or 4
    return library.SummarizationStrategy(client=client, target_count=to, threshold=(options.max or 6) - to)


def contents_of(message):
    """A message, but for its role, as the framework has it."""
    if message["role"] == "tool":
        return [library.Content.from_function_result(message["tool_call_id"], result=text_of(message["content"]))]
    calls = [library.Content.from_function_call(call["id"], call["function"]["name"], arguments=call["function"]["arguments"])
             for call in message.get("tool_calls") or ()]
    parts = message["content"] or []
    texts = [parts] if isinstance(parts, str) else [part.get("text", "[image]") for part in parts]
    return [library.Content.from_text(text) for text in texts] + calls


class Compaction(Strategy):
    history, shape, name = "full", "openai", "agent_framework_compaction"
    kind = {"results": "clear", "context": "clear", "summarise": "summarise"}.get(options.strategy, "window")

    def start(self, session):
        self.strategy, self.ask = chosen(session, self), None
        self.messages, self.given, self.places = [], 0, {}

    async def get_response(self, messages, *, stream):
        """Asks Proctor, as the client that summarises."""
        more = {"model": options.model} if options.model else {}
        text = await self.ask([{"role": message.role, "content": message.text} for message in messages],
                              max_tokens=options.max_tokens, **more)
        return SimpleNamespace(text=text)

    async def before_call(self, messages, budget, ask):
        self.ask, last = ask, None
        for place in range(self.given, len(messages)):
            message = messages[place]
            if last is not None and last.role == message["role"] == "tool":  # The results of one message are one.
                last.contents += contents_of(message)
            else:
                last = library.Message(message["role"], contents_of(message))
                self.messages.append(last)
            self.places.setdefault(id(last), []).append(place)
        self.given = len(messages)
        prompt = await library.apply_compaction(self.messages, strategy=self.strategy)
        new = []
        for message in prompt:
            places = self.places.get(id(message))
            new += [{"role": message.role, "content": message.text}] if places is None else [messages[at] for at in places]
        return new


run(Compaction())
