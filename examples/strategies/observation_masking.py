"""The preset `observation-masking` as a program: the newest 10 tool results stay, older ones become a placeholder."""

import pathlib
import re
import sys

# Not needed where the client is installed, or lies beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from proctor_strategy import strategy, text_of

KEEP_LAST = 10
MASKED = re.compile(r"Previous .* lines omitted for brevity\.", re.DOTALL)


def lines(text):
    """The number of lines; a line feed at the end begins no new one."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


@strategy(moments=("before_call",), kind="clear")
def compact(messages, budget, ask):
    results = [
        block
        for message in messages
        if message["role"] == "user" and not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    for result in results[:-KEEP_LAST]:
        text = text_of(result)
        if text and not MASKED.fullmatch(text):
            # A message that is changed in place is noticed.
            result["content"] = f"Previous {lines(text)} lines omitted for brevity."
    return messages
