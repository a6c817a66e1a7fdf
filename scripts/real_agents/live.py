"""A live agent behind `proctor live`: what the model refuses, and which requests reach it as they were sent."""

import collections
import hashlib
import http.client
import http.server
import json
import threading
import urllib.parse

from . import model


class Tap(model.Handler):
    """Passes requests on to `server.upstream`, and notes the hash of each body."""

    def do_POST(self):
        body = self.received()
        with self.server.lock:
            self.server.hashes.append(hashlib.sha256(body).hexdigest())
        self.passed("POST", body)

    def do_GET(self):
        self.passed("GET", None)

    def passed(self, method, body):
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=300)
        leave = ("host", "connection", "transfer-encoding", "content-length")
        upstream.request(method, self.path, body, {key: value for key, value in self.headers.items() if key.lower() not in leave})
        answer = upstream.getresponse()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(key, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while part := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")
        upstream.close()


class Between(http.server.ThreadingHTTPServer):
    """Listens between an agent and a proxy until it is left."""

    daemon_threads = True

    def __init__(self, url):
        super().__init__(("127.0.0.1", 0), Tap)
        self.upstream, self.hashes, self.lock = urllib.parse.urlsplit(url).netloc, [], threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    url = property(lambda self: f"http://127.0.0.1:{self.server_port}")

    def __exit__(self, *problem):
        self.shutdown()
        return super().__exit__(*problem)


def seen(log, sent):
    """What the model's log says beside the hashes of what the agent sent."""
    requests = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    came = collections.Counter(request["sha256"] for request in requests)
    return {
        "requests": len(requests),
        "refused": [request["refused"] for request in requests if request["refused"]],
        "equal": (came & collections.Counter(sent)).total(),
        "tokens": sum(request["tokens"] for request in requests),
    }
