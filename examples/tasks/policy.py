"""A model server on loopback whose answers are scripted by task files.

It plays the steps of a task in order, but takes every fact that a step needs from the prompt of the
request at hand. A fact that is gone is looked up again where that is possible, and is `unknown`
where it is not: so a task is solved only if the prompts still hold what the task needs.
"""
import argparse
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOKUPS = 2
SUMMARY_END = 1_500


def load(paths):
    """The tasks of these files and folders by name. JSON is read too, for Python before 3.11."""
    files = []
    for path in paths:
        inside = sorted(os.listdir(path)) if os.path.isdir(path) else None
        files += [path] if inside is None else [os.path.join(path, name) for name in inside]
    tasks = {}
    for path in files:
        name, kind = os.path.splitext(os.path.basename(path))
        if kind == ".json":
            with open(path, encoding="utf-8") as file:
                tasks[name] = json.load(file)
        elif kind == ".toml":
            import tomllib
            with open(path, "rb") as file:
                tasks[name] = tomllib.load(file)
    return tasks


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

    def __init__(self, step):
        self.step = step
        self.calls = step
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


class Policy:
    """All conversations, and what is left out of prompts before they are read."""

    def __init__(self, tasks, options):
        self.tasks = tasks
        self.options = options
        self.conversations = {}
        self.lock = threading.Lock()

    def remembered(self, messages):
        """The messages without those that a flag makes the policy forget."""
        ends, results = self.options.keep_ends, self.options.keep_results
        if ends is not None and len(messages) > 2 * ends:
            messages = messages[:ends] + messages[-ends:]
        if results is not None:
            old = [at for at, message in enumerate(messages) if is_result(message)][:-results]
            messages = [{} if at in old else message for at, message in enumerate(messages)]
        return messages

    def respond(self, body, user):
        """The words, the tool call, its id, and characters sent, cached and answered."""
        messages = body["messages"]
        head = [body.get("system") or "", body.get("tools") or []]
        parts = [json.dumps(part, ensure_ascii=False) for part in head + messages]
        characters = sum(map(len, parts))
        limit = self.options.window
        if limit and characters // 4 > limit:
            raise Overflow(characters // 4, limit)
        prompt = list(strings([head[0], self.remembered(messages)]))
        names = (user or "").split("/")
        task = self.tasks.get(names[0])
        if task is None:
            text = "\n".join(prompt)
            if len(text) > 2 * SUMMARY_END:
                text = text[:SUMMARY_END] + "\n[...]\n" + text[-SUMMARY_END:]
            return text, None, "", (characters, 0, len(text))
        with self.lock:
            start = int(names[3]) if len(names) == 4 and names[3].isdigit() else 0
            conversation = self.conversations.setdefault(user, Conversation(start))
            cached = conversation.cached(parts)
            words, call = conversation.answer(task, prompt)
            conversation.calls += 1
            number = "call_%04d" % conversation.calls
        return words, call, number, (characters, cached, len(words) + len(json.dumps(call)))


def is_result(message):
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return message.get("role") == "tool" or any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


class Overflow(Exception):
    """The prompt is longer than the window."""


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

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(length)
        path = self.path.split("?")[0]
        api = {"/v1/messages": anthropic, "/v1/chat/completions": openai}.get(path)
        if api is None:
            return self.send(404, {"error": {"type": "not_found_error", "message": path}})
        try:
            body = json.loads(raw)
            user = body.get("user") or (body.get("metadata") or {}).get("user_id")
            answer = self.server.policy.respond(body, user)
        except Overflow as error:
            return self.refuse(api, *error.args)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = "%s: %s" % (type(error).__name__, error)
            return self.send(400, {"type": "error", "error": {
                "type": "invalid_request_error", "message": why}})
        self.send(200, api(body.get("model"), *answer))

    def refuse(self, api, tokens, limit):
        error = {"type": "invalid_request_error",
                 "message": "prompt is too long: %d tokens > %d maximum" % (tokens, limit)}
        if api is openai:
            error["code"] = "context_length_exceeded"
            error["message"] = ("This model's maximum context length is %d tokens. However, your "
                                "messages resulted in %d tokens." % (limit, tokens))
        self.send(400, {"type": "error", "error": error})

    def send(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", required=True, nargs="+", help="task files, or folders of them")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--window", type=int, help="refuse longer prompts, in tokens")
    parser.add_argument("--keep-ends", type=int, help="see only so many first and last messages")
    parser.add_argument("--keep-results", type=int, help="see only so many tool results, the last")
    parser.add_argument("--until-eof", action="store_true", help="end with standard input")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    server.policy = Policy(load(options.tasks), options)
    print("listening at http://127.0.0.1:%d" % server.server_address[1], flush=True)
    if options.until_eof:
        threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
