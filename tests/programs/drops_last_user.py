"""Broken: drops the newest message that a user typed, which is all that is asked for."""

import json
import sys


asked = {}


def say(line):
    sys.stdout.write(json.dumps({**line, "id": asked["id"]}) + "\n")
    sys.stdout.flush()


def is_typed(message):
    blocks = message["content"]
    kinds = ["text"] if isinstance(blocks, str) else [block["type"] for block in blocks]
    return message["role"] == "user" and "tool_result" not in kinds


for raw in sys.stdin:
    line = json.loads(raw)
    asked.update(line)
    if line["type"] == "hello":
        say({"type": "hello", "protocol": 2})
    elif line["type"] == "session":
        continue
    else:
        messages = line["messages"]
        at = list(range(len(messages)))
        typed = [i for i in at if is_typed(messages[i])]
        say({"type": "messages", "messages": [[i, i + 1] for i in at if i not in typed[1:][-1:]]})
