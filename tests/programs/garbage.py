"""Broken: writes something that is no JSON."""

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
        sys.stdout.write("Compacting the conversation ...\n")
        sys.stdout.flush()
