"""Broken: begins with the assistant's message, and has no time to end the session whose number the file `last` states."""

import json
import sys
import time
from pathlib import Path

folder = Path(__file__).parent
asked = {}


def say(line):
    sys.stdout.write(json.dumps({**line, "id": asked["id"]}) + "\n")
    sys.stdout.flush()


def session_number():
    """How many sessions began, in all processes of this program."""
    with open(folder / "sessions", "ab", buffering=0) as sessions:
        sessions.write(b"x")
        return sessions.tell()


for raw in sys.stdin:
    line = json.loads(raw)
    asked.update(line)
    if line["type"] == "hello":
        say({"type": "hello", "protocol": 2})
    elif line["type"] == "session":
        is_last = session_number() >= int((folder / "last").read_text())
    else:
        if is_last:
            (folder / "late").touch()
            while not (folder / "stopped").exists():
                time.sleep(0.01)
        note = {"role": "user", "content": "Remember what was said above, and all that was agreed."}
        first = [{"role": "assistant", "content": "Welcome."}, note, note, [0, 1]]
        say({"type": "messages", "messages": first} if line.get("call") == 0 else {"type": "unchanged"})
