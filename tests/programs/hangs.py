"""Broken: never answers a call."""

import json
import sys
import time


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
        while True:
            time.sleep(60)
