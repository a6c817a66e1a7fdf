"""OpenHands' `LLMSummarizingCondenser` as a strategy.

Library   openhands-sdk 1.58.2, `openhands.sdk.context.condenser.LLMSummarizingCondenser.condense`
Run       proctor run sessions/ --strategy-cmd 'python3 openhands_condenser.py --max-size 80 --keep-first 4'

--max-size           events from which on the middle is summarised (240)
--keep-first         events at the beginning that stay, the system prompt among them (2)
--max-tokens         tokens from which on the middle is summarised (the window that can be used)
--minimum-progress   part of the events that must go, or nothing is done (0.1)
--tokenizer          the model whose tokenizer counts, as LiteLLM names it (gpt-4o)
--summary-tokens     the longest summary that is asked for (2000)
--model              the model that is asked (the agent's)

The defaults are those of the class; OpenHands' own agent has 80 and 4. A call of a tool is an event, and so is its
result: several calls of one message are as many. Each call of the agent builds on the last; the condenser is called
until it has no more to do. A refused prompt becomes a request for condensation, as in OpenHands. Lost on the way: tool
definitions are not counted, images are not shown to the model that summarises. Where the condenser gives up, nothing is
changed; OpenHands would end the conversation. It counts all events again at every call, so this program remembers the count
of each text.
"""

import argparse
import functools
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Its own price list: no request when it is imported.
os.environ["ALLOW_SHORT_CONTEXT_WINDOWS"] = "true"

from litellm.litellm_core_utils import token_counter  # noqa: E402
from litellm.types.utils import ModelResponse  # noqa: E402
from openhands.sdk import LLM, Message, TextContent  # noqa: E402
from openhands.sdk.context.condenser import LLMSummarizingCondenser  # noqa: E402
from openhands.sdk.context.condenser.base import NoCondensationAvailableException  # noqa: E402
from openhands.sdk.context.view import View  # noqa: E402
from openhands.sdk.event import (  # noqa: E402
    ActionEvent, CondensationRequest, MessageEvent, ObservationEvent, SystemPromptEvent)
from openhands.sdk.llm import LLMResponse, MessageToolCall, ThinkingBlock  # noqa: E402
from openhands.sdk.tool.schema import Observation  # noqa: E402
from pydantic import PrivateAttr, SecretStr  # noqa: E402

from proctor_strategy import strategy, text_of  # noqa: E402

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--max-size", type=int, default=240)
options.add_argument("--keep-first", type=int, default=2)
options.add_argument("--max-tokens", type=int)
options.add_argument("--minimum-progress", type=float, default=0.1)
options.add_argument("--tokenizer", default="gpt-4o")
options.add_argument("--summary-tokens", type=int, default=2000)
options.add_argument("--model")
options = options.parse_args()

token_counter._encoding_count = functools.lru_cache(maxsize=100_000)(token_counter._encoding_count)


class Result(Observation):
    """What a tool gave, as text."""


class Proctor(LLM):
    """A model that is asked through Proctor."""

    _ask: object = PrivateAttr(default=None)

    def completion(self, messages, *_, **__):
        said = ["".join(part.text for part in message.content if isinstance(part, TextContent)) for message in messages]
        system = "\n\n".join(text for text, message in zip(said, messages) if message.role == "system")
        more = {"model": options.model} if options.model else {}
        text = self._ask([{"role": message.role, "content": text} for text, message in zip(said, messages)
                          if message.role != "system"], system=system, max_tokens=options.summary_tokens, **more)
        return LLMResponse(message=Message(role="assistant", content=[TextContent(text=text)]),
                           metrics=self.metrics.get_snapshot(), raw_response=ModelResponse(id="summary"))


def blocks_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def events_of(place, message):
    """The events of one message, each with its blocks."""
    blocks = blocks_of(message)
    thought = [TextContent(text=block["text"]) for block in blocks if block["type"] == "text"]
    thinking = [ThinkingBlock(thinking=block["thinking"], signature=block.get("signature")) for block in blocks
                if block["type"] == "thinking"]
    first, name = True, f"message-{place}"
    said = [block for block in blocks if block["type"] not in ("tool_use", "tool_result")]
    for at, block in enumerate(blocks):
        if block["type"] == "tool_use":
            call = MessageToolCall(id=block["id"], name=block["name"], arguments=json.dumps(block["input"]),
                                   origin="completion")
            yield ActionEvent(id=f"{name}-{at}", thought=thought if first else [], tool_name=block["name"],
                              thinking_blocks=thinking if first else [], tool_call_id=block["id"], tool_call=call,
                              llm_response_id=name), [*(said if first else []), block]
            first = False
        elif block["type"] == "tool_result":
            yield ObservationEvent(id=f"{name}-{at}", tool_name="tool", tool_call_id=block["tool_use_id"],
                                   observation=Result.from_text(text_of(block)), action_id="call"), [block]
    if first and (said or message["role"] == "assistant"):
        role = message["role"]
        yield MessageEvent(id=name, source="agent" if role == "assistant" else "user",
                           llm_message=Message(role=role, content=thought or [TextContent(text="")])), said


@strategy(name="openhands_condenser", kind="summarise")
def compact(messages, budget, ask):
    llm = Proctor(model=options.tokenizer, api_key=SecretStr("none"), max_input_tokens=budget.effective)
    llm._ask = ask
    condenser = LLMSummarizingCondenser(
        llm=llm, max_size=options.max_size, keep_first=options.keep_first, max_tokens=options.max_tokens,
        minimum_progress=options.minimum_progress)
    system = SystemPromptEvent(id="system", system_prompt=TextContent(text=budget.system or ""), tools=[])
    made = {event.id: (event, place, blocks) for place, message in enumerate(messages)
            for event, blocks in events_of(place, message)}
    condensed, events = 0, [system, *(event for event, _, _ in made.values())]
    try:
        while condensed < 8:
            found = condenser.condense(View.from_events(
                events + [CondensationRequest()] * (budget.overflow and not condensed)), agent_llm=llm)
            if isinstance(found, View):
                break
            events, condensed = found.apply(events), condensed + 1
    except NoCondensationAvailableException as error:
        budget.reason = str(error)
    if not condensed:
        return messages
    kept = []  # What stays of each message, and summaries.
    for event in events[1:]:
        _, place, blocks = made.get(event.id) or (None, None, [{"type": "text", "text": getattr(event, "summary", "")}])
        if place is not None and kept and kept[-1][0] == place:
            kept[-1][1].extend(blocks)
        else:
            kept.append((place, list(blocks)))
    return [{"role": "user", "content": blocks} if place is None
            else messages[place] if len(blocks) >= len(blocks_of(messages[place]))
            else {"role": messages[place]["role"], "content": blocks} for place, blocks in kept]
