"""What an agent did, by the server's log, and what Proctor says of the same conversation."""

import collections
import json
import re
import subprocess

from .model import SUMMARY, messages_of

# Marks in the texts of the files, the prompts and the summaries.
FILE, PROMPT = "SETTINGS NUMBER {}.", "PROMPT NUMBER {}."
MARKS = {
    name: re.compile(re.escape(mark).replace(r"\{\}", r"(\d+)"))
    for name, mark in (("results", FILE), ("prompts", PROMPT), ("summaries", SUMMARY.split(" The task")[0]))
}


class Disagrees(Exception):
    """Proctor could not read what a product wrote."""


def marks(value):
    """Numbers of the results, prompts and summaries that a context holds."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {name: set(map(int, mark.findall(text))) for name, mark in MARKS.items()}


def breakpoints(body):
    """Blocks with `cache_control`, and `key` for a `prompt_cache_key`."""
    found = ["key"] if body.get("prompt_cache_key") else []
    if isinstance(body.get("system"), list):
        blocks = body["system"]
        found += [f"system {at + 1}/{len(blocks)}" for at, block in enumerate(blocks) if "cache_control" in block]
    tools = body.get("tools") or []
    found += [f"tool {at + 1}/{len(tools)}" for at, tool in enumerate(tools) if "cache_control" in tool]
    messages = messages_of(body)
    for at, message in enumerate(messages):
        blocks = message.get("content")
        for place, block in enumerate(blocks if isinstance(blocks, list) else []):
            if "cache_control" in block:
                found.append(f"message {at - len(messages)} block {place - len(blocks)}")
    return found


def by_log(path):
    """What the agent asked for, and where its context was compacted."""
    with open(path, encoding="utf-8") as lines:
        requests = [json.loads(line) for line in lines]
    kinds = collections.Counter(request["kind"] for request in requests)
    calls = [request for request in requests if request["kind"] == "agent"]
    if not calls:
        raise RuntimeError("no request of the agent came")
    compactions, before = [], set()
    for number, call in enumerate(calls):
        holds, had = marks(call["body"]), marks(calls[max(number - 1, 0)]["body"])
        # A summary in place of a summary is one, too: it was asked for and paid.
        is_less = any(had[name] - holds[name] for name in ("results", "prompts", "summaries"))
        if is_less and holds["summaries"] - before:
            kept = {name: len(holds[name]) for name in ("results", "prompts")}
            messages = [len(messages_of(it["body"])) for it in (calls[number - 1], call)]
            tokens = [it["tokens"] for it in (calls[number - 1], call)]
            compactions.append({"call": number, "messages": messages, "tokens": tokens, "kept": kept})
        before |= holds["summaries"]
    common = collections.Counter(tuple(breakpoints(call["body"])) for call in calls[1:])
    return {
        "calls": len(calls),
        "requests": dict(kinds),
        "summary_tokens": [request["tokens"] for request in requests if request["kind"] == "summary"],
        "system_tokens": sorted({call["system"] for call in calls}),
        "tool_tokens": sorted({call["tools"] for call in calls}),
        "breakpoints": list(common.most_common(1)[0][0]) if common else [],
        "compactions": compactions,
    }


class Proctor:
    """The program, with the settings under which sizes are the server's."""

    def __init__(self, program, window):
        self.program = program
        self.settings = ["--window", str(window), "--set", "counter=chars/4"]

    def do(self, *words, fails=False):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, timeout=120)
        if done.returncode and not fails:
            raise Disagrees(f"proctor {words[0]}: {done.stderr.strip().splitlines()[0]}")
        return done.stdout

    def imported(self, path, folder):
        """The sessions of a product's own file, and the format it was taken for."""
        said = json.loads(self.do("sessions", "import", path, "-o", folder, "--json", "--force", fails=True))
        if not said["recordings"]:
            raise Disagrees("; ".join(said["errors"]) or "`proctor sessions import` found no recording")
        files = [session["file"] for it in said["recordings"] for session in it["sessions"]]
        warnings = {kind: count for it in said["recordings"] for kind, count in it["warnings"].items()}
        return said["recordings"][0]["format"], files, warnings

    def compactions(self, session, strategy, out):
        """Calls at which a strategy compacts that session, and how many calls the session has."""
        self.do("run", "--session", session, "--strategy", strategy, *self.settings, "--out", out, "--json")
        cells = [json.loads(line) for line in (out / "cells.jsonl").read_text(encoding="utf-8").splitlines()]
        name = strategy.partition("[")[0]
        [cell] = [it for it in cells if it["strategy"].partition("[")[0] == name and it["arm"] == "strategy"]
        # Where a prompt is larger than the window, `overflow` follows the strategy's own stages.
        own = [it for it in cell.get("compactions", []) if strategy != "recorded" or it["stage"] == "recorded"]
        return cell["planned_calls"], sorted({it["call"] for it in own})

    def kept(self, session, strategy, call):
        """What is left in the context of that call."""
        words = ("inspect", session, "--strategy", strategy, "--at", call, *self.settings, "--chars", 0, "--json")
        entries = json.loads(self.do(*words))["entries"]
        holds = marks(entries)
        return {name: len(holds[name]) for name in ("results", "prompts")} | {"messages": len(entries)}

    def sessions(self, files, out):
        """Calls and compactions of the session with the most calls, and the calls of the others."""
        said = []
        for number, path in enumerate(files):
            calls, places = self.compactions(path, "recorded", out / f"recorded-{number}")
            said.append({"file": str(path), "calls": calls, "compactions": places})
        said.sort(key=lambda session: -session["calls"])
        return dict(said[0], others=[session["calls"] for session in said[1:]])
