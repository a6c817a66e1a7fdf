#!/bin/sh
# Writes the reward: 1 if the work is done, else 0. The last line printed is $WORD: the check ran to its end.
here=$(cd "$(dirname "$0")" && pwd)
logs=${LOGS_DIR:-/logs}/verifier
cd "${APP_DIR:-/app}" && mkdir -p "$logs" || exit 1
# The agent's code runs in a process that knows neither the word nor the right answers: to leave early earns nothing.
env -u WORD -u LOGS_DIR PYTHONPATH=. python3 -B "$here/ask.py" | head -c 48000 >"$logs/answers"
reward=0
cmp "$logs/answers" "$here/right" && reward=1
echo "$reward" >"$logs/reward.txt"
echo "$WORD"
