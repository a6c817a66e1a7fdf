"""The tasks, the runner and the agent, and attacks on them: `PROCTOR=proctor python3 test_tasks.py`."""
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import agent

HERE = Path(__file__).resolve().parent
PROCTOR = os.path.abspath(os.environ.get("PROCTOR", "proctor"))
KEY = "sk-ant-CANARY"


def bash(command):
    return "bash", {"command": command}


def read(path):
    return "read", {"path": path}


DEEP = (b'{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"bash","input":'
        b'%s1%s}],"stop_reason":"tool_use","usage":{"input_tokens":100,"output_tokens":5}}')
# Calls of a model, or the bytes that it answers.
ATTACKS = {
    "does nothing": [],
    "half a surrogate pair": [bash("echo \ud83d"), ("edit", {"path": "\ud83d", "old": "", "new": "\ud83d"})],
    "a deep answer": DEEP % (b'{"a":' * 200, b"}" * 200),
    "a deeper answer": DEEP % (b"[" * 100_000, b"]" * 100_000),
    "no object": b"[]",
    "no JSON": b"<html>",
    "arguments of odd kinds": [("bash", ["ls"]), ("read", {"path": 7}), ("open", {}), ("edit", {"path": "cal.py"})],
    "a folder in place of a file": [
        bash("rm cal.py && mkdir cal.py"), read("cal.py"), ("edit", {"path": "cal.py", "old": "", "new": "x"})],
    "a FIFO in place of a file": [bash("rm cal.py && mkfifo cal.py"), read("cal.py")],
    "a check that hangs": [bash("echo 'while True: pass' >cal.py")],
    "a check that is left early": [bash("printf 'import os\\nos._exit(0)\\n' >cal.py")],
    "a check that is left early, with all it can read": [bash(
        "printf 'import os\\nprint(open(\"/proc/self/environ\").read())\\nos._exit(0)\\n' >cal.py")],
    "a check that writes much": [bash("echo 'while True: print(7)' >cal.py")],
    "a reward of its own": [bash("mkdir -p ../logs/verifier && echo 1 >../logs/verifier/reward.txt")],
    "the key": [bash("tr '\\0' '\\n' </proc/$PPID/environ | grep -a CANARY; env | grep CANARY")],
    "a sparse file": [bash("truncate -s 2G big"), read("big")],
}


class Model(http.server.BaseHTTPRequestHandler):
    """A real API that attacks; the trial's number says how."""

    protocol_version = "HTTP/1.1"
    keys = set()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.keys.add(self.headers.get("x-api-key"))
        calls = list(ATTACKS.values())[int(body["metadata"]["user_id"].split("/")[2])]
        at = sum(message["role"] == "assistant" for message in body["messages"])
        if isinstance(calls, bytes) and not at:
            return self.answer(calls)
        content = [{"type": "text", "text": "done"}]
        if not isinstance(calls, bytes) and at < len(calls):
            content = [{"type": "tool_use", "id": "t%d" % at, "name": calls[at][0], "input": calls[at][1]}]
        self.answer(json.dumps({
            "id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 5}}).encode())

    def answer(self, data):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *words, **environment):
        words = [sys.executable, "-B", str(HERE / "run.py"), "--proctor", PROCTOR, "--out", str(self.folder / "out"), *words]
        return subprocess.Popen(words, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_to_end(self, *words, **environment):
        process = self.start(*words, **environment)
        said, problems = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, problems)
        self.assertTrue(said.startswith("no boundary: runs on this machine\n"), said)
        return said

    def outcomes(self):
        return [json.loads(line) for line in (self.folder / "out" / "outcomes.jsonl").read_text().splitlines()]


class Runner(Case):
    def test_the_table_says_which_strategy_solves_which_task(self):
        words = ["--task", "csv-report", "--task", "state-machine", "--strategy", "swe-agent-last-5", "--strategy", "openhands"]
        table = (
            "                  csv-report  state-machine  solved\n"
            "swe-agent-last-5      1 of 1         0 of 1  1 of 2\n"
            "openhands             0 of 1         1 of 1  1 of 2\n")
        said = self.run_to_end(*words)
        self.assertIn(table, said)
        self.assertIn("openhands: 1 of 2 tasks solved", said)
        # All trials are there: nothing is run again.
        before = self.outcomes()
        self.assertIn(table, self.run_to_end(*words))
        self.assertEqual(self.outcomes(), before)

    def test_goes_on_after_a_kill(self):
        words = ["--task", "state-machine", "--strategy", "none", "--strategy", "codex", "--jobs", "1"]
        process = self.start(*words)
        path = self.folder / "out" / "outcomes.jsonl"
        deadline = time.monotonic() + 120
        while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        process.kill()
        process.communicate()
        kept = path.read_text()
        self.assertEqual(kept.count("\n"), 1)
        # As if the power had failed while the next line was written.
        path.write_text(kept + '{"task": "state-m')
        events = (self.folder / "out" / "live" / "events.jsonl").read_bytes()
        time.sleep(1)
        self.run_to_end(*words)
        self.assertTrue(path.read_text().startswith(kept))
        self.assertEqual([each["strategy"] for each in self.outcomes()], ["none", "codex"])
        self.assertTrue((self.folder / "out" / "live" / "events.jsonl").read_bytes().startswith(events[:events.rfind(b"\n")]))

    def check_error(self, words, *expected):
        said, problems = self.start(*words).communicate(timeout=120)
        self.assertNotIn("Traceback", problems)
        for each in ("error: ",) + expected:
            self.assertIn(each, problems, said)

    def test_problems_are_said_and_no_tracebacks(self):
        for path in ("/dev/null", str(Path(__file__)), "/proc/nothing"):
            self.check_error(["--out", path], path)
        self.check_error(["--strategy", "nope"], "nope")
        self.check_error(["--window", "-7"])
        self.check_error(["--seconds", "nan"], "--seconds")
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        for line in ("no JSON", "[]", "7", '{"task": "calendar"}', '{"task": [], "strategy": "none", "trial": 0, "score": 1}',
                     '{"task": "calendar", "strategy": "none", "trial": 0, "score": "A"}', "[" * 100_000):
            (out / "outcomes.jsonl").write_text('{"task": "a", "strategy": "b", "trial": 0, "score": 1}\n%s\n' % line)
            before = (out / "outcomes.jsonl").read_bytes()
            self.check_error([], "line 2 is no outcome")
            self.assertEqual((out / "outcomes.jsonl").read_bytes(), before)
        (out / "outcomes.jsonl").unlink()
        (out / "outcomes.jsonl").mkdir()
        self.check_error([], "outcomes.jsonl")

    def test_a_trial_without_an_api_has_no_score_and_is_run_again(self):
        class Busy(Model):
            is_busy = True

            def do_POST(self):
                if not self.is_busy:
                    return super().do_POST()
                self.rfile.read(int(self.headers["content-length"]))
                self.send_error(429)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        words = ["--upstream", "http://127.0.0.1:%d" % server.server_address[1], "--task", "calendar", "--strategy", "none",
                 "--no-boundary"]
        process = self.start(*words)
        said, problems = process.communicate(timeout=120)
        self.assertIn("1 trials have no score", problems)
        [outcome] = self.outcomes()
        self.assertIsNone(outcome["score"])
        self.assertIn("429", outcome["error"])
        self.assertIn("0 of 0", said)
        Busy.is_busy = False
        self.run_to_end(*words)
        self.assertEqual([each["score"] for each in self.outcomes()], [0])
        server.shutdown()
        server.server_close()

    def test_a_trial_that_fails_is_that_trials_outcome(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        proxy = socket.create_server(("127.0.0.1", 0))
        proxy.setblocking(False)
        words = ["--upstream", "http://127.0.0.1:%d" % server.server_address[1], "--task", "calendar", "--strategy", "none"]
        refused = self.start(*words)
        self.assertIn("--no-boundary", refused.communicate(timeout=60)[1])
        self.assertEqual(refused.returncode, 2)
        words += ["--no-boundary", "--repeats", str(len(ATTACKS)), "--check-seconds", "2", "--seconds", "30"]
        address = "http://127.0.0.1:%d" % proxy.getsockname()[1]
        self.run_to_end(*words, ANTHROPIC_API_KEY=KEY, http_proxy=address, HTTP_PROXY=address, ALL_PROXY=address)
        server.shutdown()
        outcomes = sorted(self.outcomes(), key=lambda each: each["trial"])
        self.assertEqual([each["trial"] for each in outcomes], list(range(len(ATTACKS))))
        for name, outcome in zip(ATTACKS, outcomes):
            self.assertEqual(outcome["score"], 0, (name, outcome))
        # The key is added behind the proxy: neither the agent nor a file has it, nor the proxy of the environment.
        self.assertEqual(Model.keys, {KEY})
        for path in (self.folder / "out").rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY, path.read_text("utf-8", "replace"), path)
        self.assertRaises(BlockingIOError, proxy.accept)
        proxy.close()
        server.server_close()


class Tasks(Case):
    def test_a_task_is_solved_by_its_solution_and_not_before(self):
        for task in sorted(HERE.glob("*/task.toml")):
            task = task.parent
            for solves in (False, True):
                app, logs = self.folder / task.name / str(solves), self.folder / task.name / ("logs %s" % solves)
                shutil.copytree(task / "environment" / "app", app)
                places = dict(os.environ, APP_DIR=str(app), LOGS_DIR=str(logs), WORD="plum")
                if solves:
                    subprocess.run(["sh", task / "solution" / "solve.sh"], env=places, check=True)
                said = subprocess.run(["sh", task / "tests" / "test.sh"], env=places, capture_output=True, text=True).stdout
                self.assertTrue(said.endswith("plum\n"), (task.name, said))
                self.assertEqual((logs / "verifier" / "reward.txt").read_text(), "%d\n" % solves, (task.name, said))


class Files(Case):
    def setUp(self):
        super().setUp()
        self.app = self.folder / "app"
        self.app.mkdir()
        self.tools = agent.Tools(self.app)

    def check(self, path, expected):
        self.assertIn(expected, self.tools.run("read", {"path": path}))

    def test_what_is_no_file_of_the_repository_is_not_read(self):
        (self.folder / "outside").write_text("secret")
        (self.app / "folder").mkdir()
        (self.app / "folder" / "file").write_text("inside")
        (self.app / "link").symlink_to(self.folder / "outside")
        (self.app / "up").symlink_to(self.folder)
        (self.app / "zero").symlink_to("/dev/zero")
        os.mkfifo(self.app / "fifo")
        odd = ["link", "up/outside", "../outside", "folder/../../outside", "/etc/hostname", "zero", "folder", "fifo"]
        for path in odd + ["", ".", "a\0b", "missing"]:
            self.check(path, "error: ")
            self.assertIn("error: ", self.tools.run("edit", {"path": path, "old": "secret", "new": "x"}))
        for path in odd:
            self.assertIn("error: ", self.tools.run("edit", {"path": path, "old": "", "new": "x"}))
        self.assertEqual((self.folder / "outside").read_text(), "secret")
        self.check("folder/file", "inside")
        self.check("/app/folder/file", "inside")
        self.assertEqual(self.tools.run("edit", {"path": "new/one", "old": "", "new": "here"}), "edited new/one")
        self.assertEqual(self.tools.run("edit", {"path": "new/one", "old": "he", "new": "mo"}), "edited new/one")
        self.check("new/one", "more")

    def test_a_file_is_read_up_to_a_limit(self):
        with open(self.app / "big", "wb") as file:
            file.truncate(3 << 30)
        began = time.monotonic()
        self.assertLess(len(self.tools.run("read", {"path": "big"})), 13_000)
        self.assertIn("longer than", self.tools.run("edit", {"path": "big", "old": "x", "new": "y"}))
        self.assertLess(time.monotonic() - began, 10)

    def test_a_link_that_comes_and_goes_is_not_followed(self):
        (self.folder / "outside").mkdir()
        (self.folder / "outside" / "name").write_text("secret")
        (self.app / "d").mkdir()
        (self.app / "d" / "name").write_text("inside")
        flips = subprocess.Popen([sys.executable, "-c", (
            "import os, sys\nos.chdir(sys.argv[1])\nos.symlink('../outside', 'l')\nwhile True:\n"
            "    os.rename('d', 't'); os.rename('l', 'd'); os.rename('d', 'l'); os.rename('t', 'd')\n"), str(self.app)])
        try:
            end, said = time.monotonic() + 3, set()
            while time.monotonic() < end:
                said.add(self.tools.run("read", {"path": "d/name"}))
        finally:
            flips.send_signal(signal.SIGKILL)
            flips.wait()
        self.assertIn("inside", said)
        self.assertNotIn("secret", said)


if __name__ == "__main__":
    unittest.main()
