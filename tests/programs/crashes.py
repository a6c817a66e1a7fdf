"""Broken: exits with an error at its third call."""

import json
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
        if calls == 3:
            raise RuntimeError("this program crashes at its third call")
        say({"type": "unchanged"})
