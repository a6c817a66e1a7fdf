"""LangChain's `trim_messages` as a strategy.

Library   langchain-core 1.7.2, `langchain_core.messages.trim_messages`; tiktoken 0.14.0 for `--counter cl100k`
Run       proctor run sessions/ --strategy-cmd 'python3 langchain_trim.py --max-tokens 1500 --strategy last'

--max-tokens   tokens that the trimmed list may have, system prompt included (0.8 of the window that can be used)
--strategy     `last` keeps the end, `first` the beginning (last)
--start-on     kind of message that the kept end begins with: `human`, `none`, … (human)
--end-on       kinds of message that the kept list may end with, by comma, or `none` (none)
--counter      `approximate`: LangChain's own estimate; `cl100k`: tiktoken over texts, calls and results (approximate)
--allow-partial, --no-system   as `allow_partial=True`, `include_system=False`

The function keeps no state, so it gets the whole history at every call. Messages go in as OpenAI's chat API has
them, the system prompt in front. Lost on the way: thinking blocks, and the order of texts and calls in one message.
Where no message of the kind `--start-on` fits, the function returns the system prompt alone: an empty conversation,
which providers refuse.
"""

import argparse

from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from proctor_strategy import strategy

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--max-tokens", type=int)
options.add_argument("--strategy", choices=["last", "first"], default="last")
options.add_argument("--start-on", default="human")
options.add_argument("--end-on", default="none")
options.add_argument("--counter", choices=["approximate", "cl100k"], default="approximate")
options.add_argument("--allow-partial", action="store_true")
options.add_argument("--no-system", action="store_true")
options = options.parse_args()


def cl100k(messages):
    """Tokens of texts, names and arguments of calls, and results; nothing for the frame of a message."""
    import json

    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    texts = [message.text for message in messages]
    for call in (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls):
        texts += [call["name"], json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))]
    return sum(len(encoding.encode(text, disallowed_special=())) for text in texts)


def to_langchain(messages, system):
    """The id of each is its place, by which unchanged ones are found again."""
    converted = convert_to_messages([{**message, "content": message["content"] or ""} for message in messages])
    for place, message in enumerate(converted):
        message.id = str(place)
    return convert_to_messages([{"role": "system", "content": system}] if system else []) + converted


def from_langchain(kept, before, messages):
    """The messages that were given, where they are unchanged; the system prompt is not part of the answer."""
    old = {message.id: message for message in before}
    return [messages[int(message.id)] if old.get(message.id) == message else convert_to_openai_messages(message)
            for message in kept if message.type != "system"]


@strategy(history="full", shape="openai", name="langchain_trim", kind="window")
def compact(messages, budget, ask):
    before = to_langchain(messages, budget.system)
    last = options.strategy == "last"
    kept = trim_messages(
        before,
        max_tokens=options.max_tokens or int(0.8 * budget.effective),
        strategy=options.strategy,
        token_counter=cl100k if options.counter == "cl100k" else count_tokens_approximately,
        start_on=options.start_on if last and options.start_on != "none" else None,
        end_on=options.end_on.split(",") if options.end_on != "none" else None,
        include_system=last and not options.no_system,
        allow_partial=options.allow_partial,
    )
    return from_langchain(kept, before, messages)
