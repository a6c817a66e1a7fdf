"""Broken: speaks a version of the protocol that does not exist."""

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
        say({"type": "hello", "protocol": 99})
    elif line["type"] == "session":
        continue
    else:
        say({"type": "unchanged"})
