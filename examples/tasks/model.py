"""The model behind the proxy, on loopback: one that plays a script, or a real one.

The scripted one plays the steps of a task in order, but takes every fact that a step needs from the prompt of the
request at hand. A fact that is gone is looked up again where that is possible, and is `unknown` where it is not: so a
task is solved only if the prompts still hold what the task needs. Requests to a real one get its key here: the agent
never has it.
"""
import json
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOKUPS = 2
LONGEST = 64_000_000
SECONDS = 600


def strings(value):
    """All strings in a JSON value but ids, roles and kinds, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "arguments" and isinstance(item, str):
                try:
                    yield from strings(json.loads(item))
                except ValueError:
                    yield item
            elif key not in ("id", "type", "role", "tool_use_id", "tool_call_id", "cache_control"):
                yield from strings(item)


class Conversation:
    """How far a conversation is."""

    def __init__(self):
        self.step = 0
        self.calls = 0
        self.lookups = {}
        self.previous = []

    def answer(self, task, prompt):
        """The words and the tool call, if any, that follow this prompt."""
        def find(pattern):
            found = [match for text in prompt for match in re.finditer(pattern, text, re.MULTILINE)]
            return found[-1] if found else None

        if not find(task["goal"]):
            return "I no longer know what the task was, and stop here.", None
        if self.step >= len(task["steps"]):
            return "The work is done.", None
        step = task["steps"][self.step]
        written = "\n".join(strings(step))
        values = {}
        for fact in task.get("facts", []):
            name = fact["name"]
            if "{%s}" % name not in written:
                continue
            match = find(fact["pattern"])
            if match is None and "again" in fact and self.lookups.get(name, 0) < LOOKUPS:
                self.lookups[name] = self.lookups.get(name, 0) + 1
                return "I need the %s again." % name, ("bash", {"command": fact["again"]})
            values[name] = match.group(1) if match else "unknown"
        self.step += 1
        self.lookups = {}

        def fill(text):
            return re.sub(r"\{(\w+)\}", lambda match: values.get(match.group(1), match.group(0)), text)

        call = None
        if "bash" in step:
            call = ("bash", {"command": fill(step["bash"])})
        elif "read" in step:
            call = ("read", {"path": fill(step["read"])})
        elif "edit" in step:
            call = ("edit", {key: fill(text) for key, text in step["edit"].items()})
        return fill(step.get("say", "")), call

    def cached(self, parts):
        """Characters of the prefix that the request before had too."""
        same = 0
        for part, before in zip(parts, self.previous):
            if part != before:
                break
            same += len(part)
        self.previous = parts
        return same


class Script:
    """Plays the tasks. A conversation is known by the name that the agent gives it, TASK/…"""

    def __init__(self, tasks):
        self.tasks = tasks
        self.conversations = {}
        self.lock = threading.Lock()

    def respond(self, path, raw):
        """The status and the answer."""
        api = {"/v1/messages": anthropic, "/v1/chat/completions": openai}.get(path)
        if api is None:
            return 404, error("not_found_error", path)
        try:
            body = json.loads(raw)
            user = body.get("user") or body["metadata"]["user_id"]
            task = self.tasks[user.split("/")[0]]
            head = [body.get("system") or "", body.get("tools") or []]
            parts = [json.dumps(part, ensure_ascii=False) for part in head + body["messages"]]
            prompt = list(strings([head[0], body["messages"]]))
            with self.lock:
                conversation = self.conversations.setdefault(user, Conversation())
                cached = conversation.cached(parts)
                words, call = conversation.answer(task, prompt)
                conversation.calls += 1
                number = "call_%04d" % conversation.calls
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
            return 400, error("invalid_request_error", "%s: %s" % (type(problem).__name__, problem))
        sizes = (sum(map(len, parts)), cached, len(words) + len(json.dumps(call)))
        return 200, json.dumps(api(body.get("model"), words, call, number, sizes)).encode()


def error(kind, message):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key to another address."""

    def redirect_request(self, *_):
        return None


class Upstream:
    """Passes requests on to a real API, with its key."""

    def __init__(self, url):
        self.url = url.rstrip("/").removesuffix("/v1")
        handlers = [NoRedirects]
        if urllib.parse.urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1"):
            handlers.append(urllib.request.ProxyHandler({}))
        self.opener = urllib.request.build_opener(*handlers)
        self.keys = {
            "/v1/messages": ("x-api-key", os.environ.pop("ANTHROPIC_API_KEY", "none")),
            "/v1/chat/completions": ("authorization", "Bearer " + os.environ.pop("OPENAI_API_KEY", "none")),
        }

    def respond(self, path, raw):
        """The status and the answer."""
        if path not in self.keys:
            return 404, error("not_found_error", path)
        headers = dict([self.keys[path]], **{"content-type": "application/json", "anthropic-version": "2023-06-01"})
        request = urllib.request.Request(self.url + path, raw, headers)
        try:
            with self.opener.open(request, timeout=SECONDS) as answer:
                return answer.status, answer.read(LONGEST)
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read(LONGEST)
        except (OSError, ValueError) as problem:
            return 502, error("api_error", "the API cannot be reached: %s" % type(problem).__name__)


def anthropic(model, words, call, number, characters):
    sent, cached, written = characters
    content = [{"type": "text", "text": words}] if words else []
    if call:
        content.append({"type": "tool_use", "id": number, "name": call[0], "input": call[1]})
    return {
        "id": "msg_" + number, "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": (sent - cached) // 4, "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": cached // 4, "output_tokens": max(written // 4, 1)}}


def openai(model, words, call, number, characters):
    sent, cached, written = characters
    message = {"role": "assistant", "content": words or None}
    if call:
        message["tool_calls"] = [{"id": number, "type": "function", "function": {
            "name": call[0], "arguments": json.dumps(call[1])}}]
    output = max(written // 4, 1)
    return {
        "id": "chatcmpl-" + number, "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "message": message,
                     "finish_reason": "tool_calls" if call else "stop"}],
        "usage": {"prompt_tokens": sent // 4, "completion_tokens": output,
                  "total_tokens": sent // 4 + output,
                  "prompt_tokens_details": {"cached_tokens": cached // 4}}}


class Handler(BaseHTTPRequestHandler):
    """Both APIs, without streaming."""

    protocol_version = "HTTP/1.1"
    timeout = SECONDS

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        status, data = self.server.model.respond(self.path.split("?")[0], self.rfile.read(length))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """Listens at a free port of this machine."""

    daemon_threads = True

    def __init__(self, model):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model
        self.url = "http://127.0.0.1:%d" % self.server_address[1]

    def handle_error(self, *_):
        """A client that hung up is no error."""
