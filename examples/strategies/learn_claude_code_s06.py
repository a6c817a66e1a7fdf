"""The preset `learn-claude-code-s06` as a program: old results are cleared, and over 50,000 tokens, or when the model
calls `compact`, a summary takes the place of everything."""

import json
import pathlib
import sys

# Not needed where the client is installed, or lies beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from proctor_strategy import AskFailed, strategy, text_of

KEEP_RECENT = 3
MIN_CHARS = 100
THRESHOLD = 50_000
INPUT_CHARS = 80_000
REQUEST = """Below is the record of a conversation between a user and a coding agent, as JSON. Write a summary
from which the agent can carry on without having seen it. Say what has been done, how things stand
now, which decisions and constraints hold, and what comes next. Keep names, paths, numbers and
error messages exactly as they are written."""


def blocks(message, kind=None):
    content = message["content"]
    content = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block for block in content if kind in (None, block["type"])]


def clear_results(messages):
    """Each old result of more than 100 characters becomes a word about its tool."""
    names, results = {}, []
    for message in messages:
        results += [(block, names.get(block["tool_use_id"], "unknown")) for block in blocks(message, "tool_result")]
        # Of several calls with one id, the first of the newest message is meant.
        names.update((block["id"], block["name"]) for block in reversed(blocks(message, "tool_use")))
    for result, name in results[:-KEEP_RECENT]:
        if len(text_of(result)) > MIN_CHARS:
            result["content"] = f"[Previous: used {name}]"


def asked_to_compact(messages):
    """Whether the last response called the tool `compact`."""
    responses = [message for message in messages if message["role"] == "assistant"]
    return bool(responses) and any(block["name"] == "compact" for block in blocks(responses[-1], "tool_use"))


def as_json(messages):
    return "[" + ", ".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in messages) + "]"


@strategy(moments=("before_call",))
def compact(messages, budget, ask):
    clear_results(messages)
    chars = sum(len(text_of(block)) for message in messages for block in blocks(message))
    asked = budget.call > 0 and asked_to_compact(messages)
    if not messages or (-(-chars // 4) <= THRESHOLD and not asked):
        return messages
    try:
        summary = ask(f"{REQUEST}\n\n{as_json(messages)[:INPUT_CHARS]}", max_tokens=2_000)
    except AskFailed:
        return messages  # The cleared results stay cleared, and the next call tries again.
    return [
        {"role": "user", "content": "[Compressed]\n\n" + summary},
        {"role": "assistant", "content": "Understood. Continuing."},
    ]
