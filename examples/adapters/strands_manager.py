"""The conversation managers of Strands Agents as a strategy.

Library   strands-agents 1.62.0, `SlidingWindowConversationManager` and `SummarizingConversationManager`
Run       proctor run sessions/ --strategy-cmd 'python3 strands_manager.py window --window-size 40'
          proctor run sessions/ --strategy-cmd 'python3 strands_manager.py summarizing --summary-ratio 0.3'

window
  --window-size    messages that stay (40)
  --keep-results   a refused prompt does not shorten tool results
  --per-turn       it is applied before each call, not when an invocation of the agent is over
summarizing
  --summary-ratio  part of the messages that is summarised, the oldest (0.3)
  --preserve       messages at the end that stay (10)
  --threshold      part of the window from which on it is done; over 1: only where a prompt was refused (0.7)
  --max-tokens     the longest summary that is asked for (2000)
  --model          the model that is asked (the agent's)
both
  --pin-first      messages at the beginning that stay (0)

When an invocation is over, so in front of what the user typed next, the window's `apply_management` is called, as the agent does it
(`per_turn=False`). Over the threshold the other's `reduce_context`, as with `proactive_compression`; a refused prompt calls `reduce_context` with the error.
Each call builds on the last. Messages go in as Strands has them. Lost on the way: images are a line of text.
"""

import argparse
import copy
from types import SimpleNamespace

from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from proctor_strategy import strategy, text_of

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("manager", choices=["window", "summarizing"])
options.add_argument("--window-size", type=int, default=40)
options.add_argument("--keep-results", action="store_true")
options.add_argument("--per-turn", action="store_true")
options.add_argument("--summary-ratio", type=float, default=0.3)
options.add_argument("--preserve", type=int, default=10)
options.add_argument("--threshold", type=float, default=0.7)
options.add_argument("--max-tokens", type=int, default=2000)
options.add_argument("--model")
options.add_argument("--pin-first", type=int, default=0)
options = options.parse_args()


class Proctor(Model):
    """A model that is asked through Proctor."""

    def __init__(self, ask):
        self.ask = ask

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        more = {"model": options.model} if options.model else {}
        text = self.ask([from_strands(message) for message in messages], system=system_prompt,
                        max_tokens=options.max_tokens, **more)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def to_strands(message):
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": message["role"], "content": [block_to_strands(block) for block in blocks]}


def block_to_strands(block):
    kind = block["type"]
    if kind == "tool_use":
        return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
    if kind == "tool_result":
        status = "error" if block.get("is_error") else "success"
        return {"toolResult": {"toolUseId": block["tool_use_id"], "status": status, "content": [
            {"text": text_of(block)}]}}
    if kind == "thinking":
        return {"reasoningContent": {"reasoningText": {"text": block["thinking"], "signature": block.get("signature")}}}
    return {"text": block["text"] if kind == "text" else "[image]"}


def from_strands(message):
    blocks = []
    for block in message["content"]:
        if "toolUse" in block:
            call = block["toolUse"]
            blocks.append({"type": "tool_use", "id": call["toolUseId"], "name": call["name"], "input": call["input"]})
        elif "toolResult" in block:
            result = block["toolResult"]
            blocks.append({"type": "tool_result", "tool_use_id": result["toolUseId"],
                           "content": "\n".join(part["text"] for part in result["content"])})
            blocks[-1].update({"is_error": True} if result["status"] == "error" else {})
        elif "text" in block:
            blocks.append({"type": "text", "text": block["text"]})
    return {"role": message["role"], "content": blocks}


def invocation(messages):
    """Where the invocation of the agent begins that is about to call the model first: behind an answer that calls no tool.
    `None` within an invocation."""
    last = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=None)
    if last is None:
        return 0
    content = messages[last]["content"]
    calls = not isinstance(content, str) and any(block["type"] == "tool_use" for block in content)
    return None if calls else last + 1


@strategy(name="strands_manager", kind="window" if options.manager == "window" else "summarise")
def compact(messages, budget, ask):
    before = [to_strands(message) for message in messages]
    as_they_were, places = copy.deepcopy(before), {id(message): place for place, message in enumerate(before)}
    agent = SimpleNamespace(messages=list(before), model=Proctor(ask), aux_model=Proctor(ask))
    pins = options.pin_first or None
    if options.manager == "window":
        manager = SlidingWindowConversationManager(options.window_size, not options.keep_results, pin_first=pins)
    else:
        manager = SummarizingConversationManager(options.summary_ratio, options.preserve, pin_first=pins)
    if budget.overflow:
        try:
            manager.reduce_context(agent, ContextWindowOverflowException("refused"))
        except ContextWindowOverflowException as error:  # Nothing more can go: the agent would end here.
            budget.reason = str(error)
    elif options.manager == "window" and options.per_turn:
        manager.apply_management(agent)
    elif options.manager == "window":
        begin = invocation(messages)
        if begin is not None:
            said, agent.messages[begin:] = agent.messages[begin:], []
            manager.apply_management(agent)
            agent.messages += said
    elif budget.used >= options.threshold * budget.window:
        manager.reduce_context(agent)
    new = []
    for message in agent.messages:
        place = places.get(id(message))
        if place is None:
            new.append(from_strands(message))
            continue
        if message["content"] != as_they_were[place]["content"]:
            messages[place]["content"] = from_strands(message)["content"]
        new.append(messages[place])
    return new
