"""Hooks of Claude Code around a compaction of its kind, as a strategy.

Product   Claude Code 2.1.331. No library: the hooks are run as it runs them, what surrounds them is a stand-in.
Run       proctor run sessions/ --strategy-cmd 'python3 claude_code_hook.py --pre-compact pre.sh --session-start start.sh'

--pre-compact     command of a `PreCompact` hook: what it prints is added to the instructions of the summary; exit 2, or
                  `{"decision": "block"}`, blocks the compaction
--session-start   command of a `SessionStart` hook for `compact`: what it prints, or its `additionalContext`, comes after
                  the summary
--threshold       part of the window that can be used from which on it is done (0.9); so it is where a prompt was refused
--keep-last       messages that stay after the summary (0)
--max-tokens      the longest summary that is asked for (4000)

A command that names a file is run by its `#!` line, else by the interpreter of its kind; anything else by a shell.
Verified against the types and the built-in help of npm's @anthropic-ai/claude-agent-sdk 0.3.331: the keys on standard
input, exit codes, what standard output becomes. Not verified, for it is not public: the wording of the summary's
request and when it comes. Ours are plain. Not done: files that are read anew afterwards, hooks of other kinds. The
transcript that a hook is pointed to holds the conversation as it stands, without the product's own lines.
"""

import argparse
import json
import os
import stat
import subprocess

from proctor_strategy import AskFailed, safe_cut, strategy

options = argparse.ArgumentParser(allow_abbrev=False)
options.add_argument("--pre-compact")
options.add_argument("--session-start")
options.add_argument("--threshold", type=float, default=0.9)
options.add_argument("--keep-last", type=int, default=0)
options.add_argument("--max-tokens", type=int, default=4000)
options.add_argument("--hook-seconds", type=float, default=50)
options = options.parse_args()

REQUEST = """Summarise the conversation so far, for it will be replaced by your summary. Say what was asked for, word \
for word where it matters; what was decided and why; which files, commands and errors matter; what is done and what is \
open; and what comes next. Answer with the summary alone."""
RUNNERS = {".py": ["python3"], ".sh": ["sh"], ".js": ["node"], ".mjs": ["node"]}


def run_hook(command, event, messages, more):
    """Exit code and standard output of a hook."""
    path = os.path.abspath("transcript.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for place, message in enumerate(messages):
            line = {"type": message["role"], "uuid": str(place), "parentUuid": str(place - 1) if place else None,
                    "sessionId": "proctor", "message": message}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    line = {"session_id": "proctor", "transcript_path": path, "cwd": os.getcwd(), "hook_event_name": event, **more}
    is_file = os.path.isfile(command)
    runner = RUNNERS.get(os.path.splitext(command)[1], ["sh"]) if is_file else []
    if is_file and os.stat(command).st_mode & stat.S_IXUSR:
        runner = []
    done = subprocess.run(runner + [command] if is_file else command, shell=not is_file, input=json.dumps(line),
                          stdout=subprocess.PIPE, encoding="utf-8", timeout=options.hook_seconds)
    return done.returncode, done.stdout.strip()


def as_object(text):
    """The object of a hook that answers in JSON; none for plain text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@strategy(name="claude_code_hook")
def compact(messages, budget, ask):
    if not budget.overflow and budget.used < options.threshold * budget.effective:
        return messages
    instructions = ""
    if options.pre_compact:
        code, said = run_hook(options.pre_compact, "PreCompact", messages,
                              {"trigger": "auto", "custom_instructions": None})
        answer = as_object(said)
        if code == 2 or code == 0 and answer and answer.get("decision") == "block":
            budget.reason = "blocked by the hook"
            return messages
        instructions = said if code == 0 and answer is None else ""
    request = REQUEST + (f"\n\nAdditional instructions:\n{instructions}" if instructions else "")
    begin = 0
    for _ in range(4):  # A conversation that is too long even for its summary loses its oldest quarter.
        try:
            summary = ask(messages[begin:] + [{"role": "user", "content": request}], with_prefix=True,
                          max_tokens=options.max_tokens)
            break
        except AskFailed as error:
            begin = safe_cut(messages, begin + (len(messages) - begin) // 4)
            if error.kind != "too_long" or not begin:
                raise
    else:
        raise AskFailed("too_long")
    tail = messages[safe_cut(messages, -options.keep_last):] if options.keep_last else []
    text = f"The conversation before this was summarised:\n\n{summary}"
    if options.session_start:
        code, said = run_hook(options.session_start, "SessionStart", messages, {"source": "compact"})
        answer = as_object(said)
        more = said if answer is None else (answer.get("hookSpecificOutput") or {}).get("additionalContext", "")
        text += f"\n\n{more}" if code == 0 and more else ""
    return [{"role": "user", "content": text}, *tail]
