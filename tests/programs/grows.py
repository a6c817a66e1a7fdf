"""Broken: makes the context larger at every call."""

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
        note = {"role": "user", "content": "Remember what was said above. " * 40}
        say({"type": "messages", "messages": [note, [0, len(messages)]]})
