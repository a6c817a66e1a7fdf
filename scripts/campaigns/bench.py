"""What the campaigns share: a mock model, ways to run the program, and tables of what came of it."""

import argparse
import collections
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

# A server that is given a key is the way to a provider.
os.environ.setdefault("BENCH_KEY", "bench")

SESSIONS = '[[sessions]]\nsynthetic = {{ family = "code-review", rounds = {rounds}, seed = 1 }}\ncount = {count}\n'
OURS = '[[strategies]]\npreset = "observation-masking"\nset = {{ clear_results.keep_last = 1 }}\n'
PLAIN = 'name = "plain"\n[window]\ntokens = 30_000\n' + SESSIONS + OURS
PAID = (
    'name = "paid"\n[models]\nreader = {{ kind = "{kind}", model = "m", key = "BENCH_KEY", base_url = "http://127.0.0.1:{port}{base}" }}\n'
    'cassette = "{cassette}"\n[models.pace]\nat_once = 4\n' + SESSIONS + OURS
)
# Bytes that measure time may differ between two runs of the same.
TIMES = {"timings.jsonl", "call-times.jsonl", "lock"}


class Model(http.server.ThreadingHTTPServer):
    """Answers each question alike, in OpenAI's API and in the batches of both providers, and counts what is asked of it again.

    An answer is known by its request: a single one names a hash of it as its model, which the cassette keeps, and one
    of a batch has the key of the cassette's entry.
    """

    daemon_threads = True
    # More than one process after another connects at once.
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.begin({})
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def begin(self, needed):
        """Forgets everything. `needed` says how often each answer has to be asked for."""
        self.needed, self.sent, self.kept = needed, collections.Counter(), collections.Counter()
        self.batches, self.labels, self.uploads, self.in_flight, self.paid_twice = {}, {}, {}, 0, 0

    def note(self, names, is_batch):
        """Counts answers that were sent before and are asked for again: received by nobody, or paid for twice."""
        for name in names:
            if self.sent[name] >= self.needed.get(name, 1):
                # A batch is the provider's, whether or not anybody read that it was taken.
                is_twice = is_batch or self.kept[name] >= self.needed.get(name, 1)
                self.paid_twice += is_twice
                self.in_flight += not is_twice

    def handle_error(self, request, client_address):
        """A client that was killed is what a campaign is for."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        with self.server.lock:
            batches, labels = dict(self.server.batches), self.server.labels
        path = self.path.split("?")[0].split("/")
        if path[-1] == "batches":
            listed = [{"id": name, "request_counts": {"succeeded": len(names)}, "metadata": labels[name]}
                      for name, names in batches.items()]
            return self.reply(json.dumps({"data": listed[::-1], "has_more": False}).encode())
        if path[-1] not in ("results", "content"):
            ended = {"processing_status": "ended", "status": "completed", "output_file_id": path[-1]}
            return self.reply(json.dumps(ended).encode())
        usage = {"input_tokens": 100, "output_tokens": 3}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        message |= {"content": [{"type": "text", "text": "not in context"}], "usage": usage}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "not in context"}}
        body = {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 3}}
        # Each provider's client reads its own half of a line.
        answer = {"result": {"type": "succeeded", "message": message}, "response": {"status_code": 200, "body": body}}
        lines = [{"custom_id": name} | answer for name in batches[path[-2]]]
        self.reply("".join(json.dumps(line) + "\n" for line in lines).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        digest = hashlib.sha256(body).hexdigest()[:16]
        if self.path.endswith("/files"):
            requests = [json.loads(line) for line in body.splitlines() if line.startswith(b"{")]
            with self.server.lock:
                self.server.uploads["f" + digest] = requests
            return self.reply(json.dumps({"id": "f" + digest}).encode())
        is_batch, names = self.path.endswith("/batches"), ["m-" + digest]
        with self.server.lock:
            if is_batch:
                batch = json.loads(body)
                requests = batch.get("requests") or self.server.uploads[batch["input_file_id"]]
                names = [request["custom_id"] for request in requests]
            self.server.note(names, is_batch)
            if is_batch:
                self.server.batches["b" + digest] = names
                self.server.labels["b" + digest] = batch.get("metadata")
                self.server.sent.update(names)
        if is_batch:
            return self.reply(json.dumps({"id": "b" + digest}).encode())
        delta = {"index": 0, "delta": {"content": "not in context"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 3}
        events = [{"model": names[0], "choices": [delta]}, {"model": names[0], "choices": [], "usage": usage}]
        events = [*map(json.dumps, events), "[DONE]"]
        self.reply("".join(f"data: {event}\n\n" for event in events).encode(), "text/event-stream")
        with self.server.lock:
            self.server.sent.update(names)


def kept(cassette):
    """How often each answer is in a cassette, by the names under which the model knows it; half a line is none, nor is one with zeros."""
    lines = cassette.read_bytes().splitlines(keepends=True)[1:] if cassette.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith(b"\n") and b"\0" not in line]
    return collections.Counter(name for entry in entries for name in (entry["key"], entry["answer"]["model"]))


def arguments(text, count, flags=()):
    """The arguments of a campaign: the program, how often, the seed, and flags of its own with their help."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("proctor", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--count", type=int, default=count, help=f"how often in all (default {count})")
    parser.add_argument("--seed", type=int, default=1)
    for flag, said in flags:
        parser.add_argument(flag, action="store_true", help=said)
    return parser.parse_args()


def run(command, folder, **options):
    """Runs a command to its end."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, **options)


def files(folder):
    """The bytes of every file below a folder, by name, but those that measure time."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name not in TIMES)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def library(parent, source):
    """A library that LD_PRELOAD puts before the system's; none without `gcc`, or on other systems than Linux."""
    if sys.platform != "linux" or not shutil.which("gcc"):
        return None
    compiled = ["gcc", "-shared", "-fPIC", "-O2", "-o", f"{parent}/before.so", "-x", "c", "-", "-ldl"]
    subprocess.run(compiled, input=source, text=True, check=True)
    return f"{parent}/before.so"


def fresh(parent, name, inputs):
    """A new folder that holds these inputs, files by name."""
    folder = Path(parent) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, text in inputs.items():
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def finish(rows, columns, seed, problems):
    """Prints the table and the problems; exits with 1 if there are any."""
    cells = [columns, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(f"seed {seed}: {'all of it held' if not problems else f'{len(problems)} did not hold'}")
    sys.exit("\n".join(problems[:20]) if problems else 0)


def scratch():
    """A folder for the length of a campaign."""
    return tempfile.TemporaryDirectory(prefix="campaign-")
