"""Broken: cuts a text in the middle of a character, so that its line is no UTF-8."""

import json
import sys

for raw in sys.stdin.buffer:
    line = json.loads(raw)
    if line["type"] == "hello":
        answer = b'{"type":"hello","protocol":2,"id":0}'
    elif line["type"] == "session":
        continue
    else:
        text = "The naïve summary: café".encode()[:-1]  # Half of the last letter.
        answer = b'{"type":"summary","id":%d,"from":0,"to":%d,"text":"%s"}' % (line["id"], len(line["messages"]), text)
    sys.stdout.buffer.write(answer + b"\n")
    sys.stdout.buffer.flush()
