"""Plays a program of `examples/bugs` in the sessions of compaction-conformance-kit, where that package is installed."""

import json
import subprocess
import sys

try:
    import compaction_kit
    from compaction_kit.compactors import ChecklistCompactor
except ImportError:
    compaction_kit = None

ROUNDS = 3
# Messages between two compactions: the kit has none of its own there.
MORE = [message for turn in range(40) for message in (("user", f"Go on with step {turn} of the pipeline."), ("assistant", "Acknowledged."))]
# The laws that say the same as a complaint of the kit: about lost types, and about what is lost after the first round.
NAMES = {"safety_rule": "rules_stay", "hard_constraint": "rules_stay", "fact": "values_stay", "late": "kept_stays_kept"}


def blocks(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text(message):
    return "\n".join(block.get("text", "") for block in blocks(message))


def size(message):
    """Tokens: as they were sent, and for a new message a quarter of its characters."""
    return message["tokens"] if "tokens" in message else len(json.dumps(message["content"], ensure_ascii=False)) // 4


def laid_out(parts, messages):
    """A list of messages, in which a pair stands for a range of another list."""
    whole = []
    for part in parts:
        whole += messages[part[0]:part[1]] if isinstance(part, list) else [part]
    return whole


def answered(before, answer):
    """The context that an answer makes of another."""
    if answer["type"] == "messages":
        return laid_out(answer["messages"], before)
    if answer["type"] == "summary":
        answer = {"edits": [{**answer, "with": [{"role": "user", "content": answer["text"]}]}]}
    after = before
    for edit in reversed(answer.get("edits", [])):
        after = after[:edit["from"]] + laid_out(edit["with"], before) + after[edit["to"]:]
    return after


class Program:
    """A compactor of the kit. The kit's best compactor answers where the program asks a model."""

    def __init__(self, path):
        self.name, self.messages, self.sent, self.window, self.lines = path.stem, [], [], None, 0
        command = [sys.executable, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.answer({"type": "hello", "protocol": 2, "proctor": "0.1.0"})

    def send(self, line):
        print(json.dumps(line), file=self.process.stdin, flush=True)

    def answer(self, line):
        self.send({"id": self.lines, **line})
        self.lines += 1
        answer = json.loads(self.process.stdout.readline())
        if answer["type"] != "ask":
            return answer
        asked = [compaction_kit.Turn(message["role"], text(message)) for message in laid_out(answer["messages"], self.sent)]
        return self.answer({"type": "answer", "text": ChecklistCompactor(tail_turns=0).compact(asked).text, "stop": "end"})

    def compact(self, turns, round_num=1):
        added = [(turn.role, turn.text) for turn in turns] if round_num == 1 else MORE
        self.messages += [{"role": "assistant" if role == "assistant" else "user", "content": [{"type": "text", "text": words}]}
                          for role, words in added]
        used = sum(map(size, self.messages))
        if self.window is None:
            self.window = int(used / 0.85)
            window = {"tokens": self.window, "effective_tokens": self.window}
            self.send({"type": "session", "system": None, "tools": [], "window": window, "seed": 1})
        self.sent = [{**message, "tokens": size(message)} for message in self.messages]
        line = {"type": "before_call", "call": round_num, "messages": self.sent, "prompt_tokens": used, "fixed_tokens": 0}
        after = answered(self.sent, self.answer({**line, "budget_tokens": self.window}))
        self.messages = [{"role": message["role"], "content": message["content"]} for message in after]
        return compaction_kit.CompactedContext("\n".join(f"[{one['role']}] {text(one)}" for one in after), self.name, round_num)


def complaints(path):
    """The complaints of the kit's `assert_no_flags`, as laws where they have one."""
    program = Program(path)
    report = compaction_kit.check_compactor(program, rounds=ROUNDS)
    program.process.kill()
    return {NAMES.get(name, name) for name in [*report.flagged_types, *(["late"] if report.late_cliff_types else [])]}
