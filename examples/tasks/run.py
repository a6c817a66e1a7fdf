#!/usr/bin/env python3
"""Runs each task under each strategy behind `proctor live`, and prints the tasks solved.

There is no boundary: the agent runs what the model writes on this machine, with your rights. The model is a scripted
one that needs no key, unless you name an API. The same command continues after an interruption: trials that ended
are not run again.
"""
import argparse
import concurrent.futures
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import agent
import model

HERE = Path(__file__).resolve().parent
STRATEGIES = ["none", "observation-masking[keep_last=5]", "openhands", "codex"]
# No key and no proxy: the program and its children talk to this machine only.
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
               "NO_PROXY": "127.0.0.1,localhost"}
START_SECONDS = 60
END_SECONDS = 300


class Failed(Exception):
    """The run cannot go on."""


def end_with_parent():
    """Has the system end this process with the one that started it, where the system can."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    except AttributeError:
        pass


class Live:
    """`proctor live` in front of the model."""

    def __init__(self, options, upstream):
        self.folder = options.out / "live"
        words = [options.proctor, "live", "--upstream", upstream, "--window", str(options.window)]
        words += ["--out", str(self.folder), "--outcomes", str(options.out / "outcomes.jsonl")]
        words += [word for name in options.strategy for word in ("--strategy", name)]
        self.said = open(options.out / "live.txt", "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            words, env=ENVIRONMENT, start_new_session=True, preexec_fn=end_with_parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.said, text=True, errors="replace")
        watch = threading.Timer(START_SECONDS, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        watch.cancel()
        if not line.startswith("listening at "):
            self.process.kill()
            raise Failed("`%s live` does not start:\n%s" % (options.proctor, self.tail()))
        self.url = line.split()[-1]

    def tail(self):
        self.said.seek(0)
        return self.said.read()[-2000:]

    def end(self):
        """Ends it, repeats its warnings, and returns its report."""
        self.process.send_signal(signal.SIGINT)
        try:
            report = self.process.communicate(timeout=END_SECONDS)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            report = "`proctor live` did not end\n"
        problems = [line for line in self.tail().splitlines() if line.startswith(("warning:", "error:", " hint:"))]
        print("".join("proctor live: %s\n" % line for line in problems), end="", file=sys.stderr)
        return report


class Bench:
    """The trials of a run."""

    def __init__(self, options, live):
        self.options = options
        self.live = live
        self.work = options.out / "work"
        self.running = set()
        self.is_stopped = False

    def trial(self, task, number, repeat):
        """The outcome of one trial: not solved if anything in it fails, and without a score if the API was not there."""
        folder = self.work / ("%s-%d-%d" % (task, number, repeat))
        outcome = {"task": task, "strategy": self.options.strategy[number], "trial": repeat, "score": 0,
                   "model": self.options.asked}
        try:
            shutil.copytree(HERE / task / "environment" / "app", folder / "app")
            outcome["agent"] = self.agent(task, number, repeat, folder)
            if outcome["agent"].startswith("exit %d:" % agent.EXIT_UNAVAILABLE):
                return dict(outcome, score=None, error=outcome["agent"])
            outcome["score"], outcome["check"] = self.check(task, folder)
        except (OSError, ValueError) as error:
            outcome["check"] = "failed: %s" % error
        return outcome

    def agent(self, task, number, repeat, folder):
        """Runs the agent, and returns how it ended."""
        url = "%s/t/%s/s/%d/r/%d" % (self.live.url, task, number, repeat)
        words = [sys.executable, str(HERE / "agent.py"), "--url", url, "--api", self.options.api]
        words += ["--model", self.options.model, "--user", "%s/%d/%d" % (task, number, repeat)]
        words += ["--work", str(folder / "app"), "--prompt-file", str(HERE / task / "instruction.md")]
        code, said = self.run(words, self.options.seconds, ENVIRONMENT, folder)
        if code is None:
            return "stopped after %d s" % self.options.seconds
        return "done" if code == 0 else "exit %d: %s" % (code, (said.strip().splitlines() or [""])[-1][:200])

    def check(self, task, folder):
        """Runs the check, and returns the score with the reason where there is one. The check ran to its end only if
        the last that it printed is a word that no other process knows."""
        word, logs = secrets.token_hex(16), folder / "logs"
        logs.mkdir()
        environment = dict(ENVIRONMENT, APP_DIR=str(folder / "app"), LOGS_DIR=str(logs), WORD=word)
        words = ["sh", str(HERE / task / "tests" / "test.sh")]
        code, said = self.run(words, self.options.check_seconds, environment, folder, is_quiet=True)
        if code is None:
            return 0, "stopped after %d s" % self.options.check_seconds
        if not said.endswith("\n%s\n" % word) and said != word + "\n":
            return 0, "it did not run to its end"
        reward = os.open(logs / "verifier" / "reward.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(reward, "rb") as file:
            if not stat.S_ISREG(os.fstat(reward).st_mode):
                raise ValueError("the reward is no file")
            score = float(file.read(100))
        if not 0 <= score <= 1:
            raise ValueError("the reward is %s" % score)
        return score, "done"

    def run(self, words, seconds, environment, folder, is_quiet=False):
        """Runs a program, ends all of its group, and returns its exit status (none if it was stopped) and its words."""
        with open(folder / "said.txt", "w+b") as said:
            process = subprocess.Popen(
                words, env=environment, cwd=folder, start_new_session=True, stdin=subprocess.PIPE,
                stdout=said, stderr=subprocess.DEVNULL if is_quiet else said)
            self.running.add(process)
            try:
                if self.is_stopped:
                    process.terminate()
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    pass
            finally:
                self.running.discard(process)
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
                process.stdin.close()
            said.seek(0)
            return code, said.read(48_000).decode("utf-8", "replace")

    def stop(self):
        self.is_stopped = True
        for process in list(self.running):
            process.terminate()


def read_outcomes(path):
    """The scores so far by trial. A line that an interruption cut off is taken out of the file, and so is that of a trial
    without a score, which is run again."""
    outcomes = {}
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            each = json.loads(line)
            key = each["task"], each["strategy"], each["trial"]
            if each["score"] is not None:
                float(each["score"])
                outcomes[key] = each
        except (ValueError, LookupError, TypeError, RecursionError) as problem:
            raise Failed("`%s`, line %d is no outcome of a trial (%s: %s); take the line out, and the same command continues" % (
                path, number, type(problem).__name__, problem)) from None
    rest = path.with_suffix(".new")
    rest.write_text("".join(json.dumps(each) + "\n" for each in outcomes.values()), encoding="utf-8")
    rest.replace(path)
    return outcomes


def table(outcomes, tasks, strategies, repeats):
    """The trials solved by strategy and task."""
    rows = [["", *tasks, "solved"]]
    for strategy in strategies:
        scores = [[outcomes.get((task, strategy, repeat)) for repeat in range(repeats)] for task in tasks]
        known = [[each["score"] for each in cell if each] for cell in scores]
        cells = ["%g of %d" % (sum(cell), len(cell)) if cell else "-" for cell in known]
        rows.append([strategy, *cells, "%g of %d" % (sum(map(sum, known)), sum(map(len, known)))])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])])
             for row in rows]
    return "\n".join(lines) + "\n"


def trials(options, bench, outcomes):
    """Runs the trials that are not there yet, and keeps each as it ends."""
    plan = [(task, number, repeat) for repeat in range(options.repeats) for task in options.task
            for number in range(len(options.strategy))
            if (task, options.strategy[number], repeat) not in outcomes]
    unavailable = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, \
            open(options.out / "outcomes.jsonl", "a", encoding="utf-8") as file:
        try:
            for done in concurrent.futures.as_completed([pool.submit(bench.trial, *each) for each in plan]):
                outcome = done.result()
                if bench.live.process.poll() is not None:
                    raise Failed("`proctor live` ended:\n" + bench.live.tail())
                if outcome["score"] is None:
                    unavailable.append("%(task)s under %(strategy)s: %(error)s" % outcome)
                else:
                    outcomes[outcome["task"], outcome["strategy"], outcome["trial"]] = outcome
                file.write(json.dumps(outcome) + "\n")
                file.flush()
                os.fsync(file.fileno())
                print("%(task)s under %(strategy)s: %(score)s" % outcome, file=sys.stderr)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            bench.stop()
            raise
    if unavailable:
        print("warning: %d trials have no score, because the API was not there; the same command runs them again, "
              "and the bill has both\n%s" % (len(unavailable), unavailable[0]), file=sys.stderr)


def options_of(names):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proctor", default="proctor", help="the program")
    parser.add_argument("--task", action="append", choices=names, help="only this task; may be repeated")
    parser.add_argument("--strategy", action="append", help="in place of %s; may be repeated" % ", ".join(STRATEGIES))
    parser.add_argument("--window", type=int, default=24_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--seconds", type=float, default=600, help="time limit of an agent")
    parser.add_argument("--check-seconds", type=float, default=60, help="time limit of a check")
    parser.add_argument("--out", type=Path, default=Path("reports/tasks"))
    parser.add_argument("--upstream", help="a real API, whose key is ANTHROPIC_API_KEY or OPENAI_API_KEY")
    parser.add_argument("--api", choices=["anthropic", "openai"], default="anthropic")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--no-boundary", action="store_true",
                        help="let a real model run commands on this machine, with your rights")
    options = parser.parse_args()
    if options.upstream and not options.no_boundary:
        parser.error("a real model's commands would run on this machine, with your rights: allow it by `--no-boundary`")
    # A name that is typed twice is meant once.
    options.task = list(dict.fromkeys(options.task or names))
    options.strategy = list(dict.fromkeys(options.strategy or STRATEGIES))
    options.asked = options.model + (" at %s" % options.upstream if options.upstream else "")
    if min(options.repeats, options.jobs) < 1:
        parser.error("`--repeats` and `--jobs` are at least 1")
    if not (0 < options.seconds < 1e6 and 0 < options.check_seconds < 1e6):
        parser.error("`--seconds` and `--check-seconds` are more than 0")
    if not shutil.which(options.proctor):
        parser.error("there is no program `%s`: build it, and name it by `--proctor target/release/proctor`" % options.proctor)
    options.out = options.out.resolve()
    return options


def run(options, names):
    """Runs the trials that are missing, prints the table and the report, and returns the exit status."""
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed("another run uses `%s`: name another folder by `--out`" % options.out) from None
        outcomes = read_outcomes(options.out / "outcomes.jsonl")
        others = {each.get("model") for each in outcomes.values()} - {options.asked}
        if others:
            raise Failed("`%s` has trials of %s: name another folder by `--out`" % (options.out, sorted(map(str, others))[0]))
        if options.upstream:
            behind = model.Upstream(options.upstream)
        else:
            behind = model.Script({name: tomllib.loads((HERE / name / "script.toml").read_text()) for name in names})
        server = model.Server(behind)
        live = Live(options, server.url)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status = 0
        try:
            bench = Bench(options, live)
            shutil.rmtree(bench.work, ignore_errors=True)
            trials(options, bench, outcomes)
        except (Failed, OSError) as error:
            print("error: %s" % error, file=sys.stderr)
            status = 1
        except KeyboardInterrupt:
            print("stopped; the same command continues", file=sys.stderr)
            status = 130
        report = live.end()
        print(table(outcomes, options.task, options.strategy, options.repeats))
        print(report)
        return status


def main():
    names = sorted(path.parent.name for path in HERE.glob("*/task.toml"))
    options = options_of(names)
    print("no boundary: runs on this machine", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(options, names)
    except (Failed, OSError, ValueError) as error:
        sys.exit("error: %s" % error)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
