"""Broken: makes the context larger at every call."""

import json
import sys


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


for raw in sys.stdin:
    line = json.loads(raw)
    if line["type"] == "hello":
        say({"type": "hello", "protocol": 1})
    elif line["type"] == "session":
        continue
    else:
        messages = line["messages"]
        note = {"role": "user", "content": "Remember what was said above. " * 40}
        say({"type": "messages", "messages": [note, [0, len(messages)]]})
