"""Broken: what it writes is another text each time."""

import json
import random
import sys


asked = {}


def say(line):
    sys.stdout.write(json.dumps({**line, "id": asked["id"]}) + "\n")
    sys.stdout.flush()


calls = 0
for raw in sys.stdin:
    line = json.loads(raw)
    asked.update(line)
    if line["type"] == "hello":
        say({"type": "hello", "protocol": 2})
    elif line["type"] == "session":
        calls = 0
    else:
        calls += 1
        messages = line["messages"]
        # Not the seed of the session, which would be the same each time.
        note = {"role": "user", "content": f"Note {random.SystemRandom().random()}"}
        say({"type": "messages", "messages": [[0, len(messages)], note] if calls == 2 else [[0, len(messages)]]})
