"""Broken: answers with a range that ends behind the last message."""

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
        say({"type": "messages", "messages": [[0, len(messages) + 1]]})
