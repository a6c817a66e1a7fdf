"""Broken: drops messages with tool calls and keeps their results."""

import json
import sys


asked = {}


def say(line):
    sys.stdout.write(json.dumps({**line, "id": asked["id"]}) + "\n")
    sys.stdout.flush()


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
        has_call = ['"tool_use"' in json.dumps(message["content"]) for message in messages]
        kept = [[i, i + 1] for i in at if not (messages[i]["role"] == "assistant" and has_call[i])]
        say({"type": "messages", "messages": kept})
