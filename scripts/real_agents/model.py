"""A scripted model behind the four API formats that agents use.

Answers an agent's request with one tool call, which reads the next file of the work folder, until the rounds of the
prompt are used up; then with a last word, after which the next prompt begins. A request that offers no tools is one
for a summary or a title, and its answer is fixed. Usage is counted as the characters of all texts, divided by 4.
"""

import gzip
import hashlib
import http.server
import json
import re
import threading

from . import strict

MODEL = "gpt-scripted"
SUMMARY = (
    "SUMMARY NUMBER {}. The task is to read the files of the folder `data` one after the other and to report the port. "
    "The files so far held settings of services; none of them had the port. Next: read the next file."
)
# A request for a summary, where it is not a prompt or a summary of ours.
ASKED, OURS = re.compile(r"summar|checkpoint|snapshot|compact", re.I), re.compile(r"(PROMPT|SUMMARY|SETTINGS) NUMBER \d")
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SHELLS = re.compile(r"shell|bash|exec|terminal|run_command")
# Fields whose texts a model reads; ids and types are not counted.
READ = {"text", "content", "output", "arguments", "name", "input", "function", "tool_calls", "thinking"}
READ |= {"parts", "functionCall", "functionResponse", "args", "response"}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def characters(value):
    """Characters of the texts in a part of a request, without the JSON around them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(characters(item) for item in value)
    if isinstance(value, dict):
        of_tool = value.get("type") == "tool_use"
        return sum(
            len(compact(part)) if of_tool and key == "input" else characters(part)
            for key, part in value.items()
            if key in READ
        )
    return 0


def messages_of(body):
    said = next(body[key] for key in ("input", "contents", "messages") if key in body)
    return [{"role": "user", "content": said}] if isinstance(said, str) else said


def system_of(body):
    """What precedes the conversation: the system prompt's own field, or the leading messages that hold it."""
    parts = [body[key] for key in ("system", "instructions", "systemInstruction") if body.get(key)]
    for message in messages_of(body):
        if message.get("role") not in ("system", "developer"):
            break
        parts.append(message["content"])
    return parts


def sizes(body):
    """Tokens of the system prompt, of the tools, and of the whole request, at 4 characters each."""
    tools = len(compact(body["tools"])) if body.get("tools") else 0
    apart = characters([body.get(key) for key in ("system", "instructions", "systemInstruction")])
    whole = apart + characters(messages_of(body)) + tools
    return characters(system_of(body)) // 4, tools // 4, whole // 4


def last_words(body):
    """The last text of the request that is neither a tool's nor a reminder of the agent's own."""
    said = [message for message in messages_of(body) if message.get("role") not in ("system", "developer")]
    last = said[-1] if said else {}
    content = last.get("content") or last.get("parts") or ""
    blocks = [{"text": content}] if isinstance(content, str) else content
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return texts[-1] if texts and last.get("role") == "user" and not texts[-1].startswith("<system-reminder>") else ""


def kind_of(body):
    """`agent`, `summary` or `title`. Agents also ask for a summary on the live prompt, with its tools."""
    words = last_words(body)
    if body.get("tools"):
        return "summary" if ASKED.search(words) and not OURS.search(words) else "agent"
    begin = json.dumps(system_of(body) or messages_of(body)[:1])[:400].lower()
    return "title" if "title" in begin else "summary"


def properties(tool):
    function = tool.get("function", tool)
    schema = function.get("parameters") or function.get("input_schema") or function.get("parametersJsonSchema") or {}
    return schema.get("properties", {}), schema.get("required", [])


def filler(schema):
    """Some value that the schema of a required argument allows."""
    if schema.get("enum"):
        return schema["enum"][0]
    return {"boolean": False, "integer": 10000, "number": 10000, "array": []}.get(schema.get("type"), "read a file")


def in_tags(summary, body):
    """The summary as agents ask for it: those that name tags ask again where an answer has none."""
    asked = json.dumps([last_words(body), system_of(body)])
    tag = next((tag for tag in ("state_snapshot", "summary") if f"<{tag}>" in asked), None)
    return f"<analysis>Nothing is missing.</analysis>\n<{tag}>{summary}</{tag}>" if tag else summary


def by_name(tools):
    """Tools by their names; Gemini's are lists of declarations."""
    tools = [declared for tool in tools for declared in tool.get("functionDeclarations", [tool])]
    return {tool.get("function", tool).get("name") or "": tool for tool in tools}


def finish(tools):
    """Name and arguments of the call that ends the work, where there is such a tool."""
    for name, tool in by_name(tools).items():
        if name in ("submit_and_exit", "attempt_completion"):
            known, required = properties(tool)
            return name, {need: filler(known.get(need, {})) for need in required}
    return None


def tool_call(tools, file, command):
    """Name and arguments of a call that runs the command, or reads the file where no tool runs commands."""
    named = by_name(tools)
    choices = [(name, ("command", "cmd", "commands"), command) for name in sorted(named) if SHELLS.search(name.lower())]
    paths = ("path", "file_path", "filePath", "absolute_path")
    choices += [(name, paths, file) for name in sorted(named) if "read" in name.lower()]
    for name, keys, value in choices:
        known, required = properties(named[name])
        key = next((key for key in keys if key in known), None)
        if key is None:
            continue
        arguments = {need: filler(known.get(need, {})) for need in required if need not in keys}
        listed = [value] if key == "commands" else ["bash", "-c", value]
        arguments[key] = listed if known[key].get("type") == "array" else value
        return name, arguments
    raise ValueError(f"no tool among {sorted(named)} reads a file")


class Script:
    """What the model says, and the log of what it was asked: one JSON line for each request."""

    def __init__(self, log, rounds, files, last=None, refuses=False):
        # Whether histories are refused that a provider would refuse; agents on their own send some.
        self.refuses = refuses
        self.log = open(log, "w", encoding="utf-8")
        self.lock = threading.Lock()
        # Rounds of each prompt; a prompt beyond these has as many as the last.
        self.rounds, self.files, self.last = list(rounds), files, last
        self.left = self.rounds[0]
        self.asked = self.read = self.summaries = 0

    def answer(self, path, headers, body, sha256):
        """The request's number, the text, the tool call or nothing, and the tokens of the request."""
        with self.lock:
            kind, (system, tools, tokens) = kind_of(body), sizes(body)
            refused = strict.problem(path, body) if self.refuses else None
            text, call = (None, None) if refused else self.say(kind, body)
            self.asked += 1
            kept = {name: value for name, value in headers.items() if name.lower() in ("user-agent", "session-id")}
            line = {"n": self.asked, "path": path, "kind": kind, "tokens": tokens, "system": system, "tools": tools}
            line.update(headers=kept, answer=text, call=call, refused=refused, sha256=sha256, body=body)
            self.log.write(json.dumps(line, ensure_ascii=False) + "\n")
            self.log.flush()
            if refused:
                raise ValueError(refused)
            return self.asked, text, call, tokens

    def say(self, kind, body):
        if kind == "title":
            return "Reading files", None
        if kind == "summary":
            self.summaries += 1
            return in_tags(SUMMARY.format(self.summaries), body), None
        if self.left == 0:
            is_over, self.rounds = len(self.rounds) == 1, self.rounds[1:] or self.rounds
            self.left = self.rounds[0]
            end = finish(body["tools"]) or (self.last and tool_call(body["tools"], "", self.last))
            return "That is all for now.", end if end and is_over else None
        self.left -= 1
        file = self.files[self.read % len(self.files)]
        self.read += 1
        return f"Next is file {self.read}.", tool_call(body["tools"], file, f"cat {file}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 300

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.whole(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []})

    def do_POST(self):
        received = self.received()
        try:
            body = json.loads(gzip.decompress(received) if self.headers.get("content-encoding") == "gzip" else received)
        except ValueError:
            return self.whole(400, {"error": {"type": "invalid_request_error", "message": "not JSON"}})
        path = self.path.split("?")[0]
        if path.endswith(":countTokens"):
            return self.whole(200, {"totalTokens": sizes(body)[2]})
        if not {"messages", "input", "contents"} & body.keys():
            return self.whole(404, {"error": {"type": "not_found_error", "message": f"no such API: {path}"}})
        if path.endswith("/count_tokens"):
            return self.whole(200, {"input_tokens": sizes(body)[2]})
        try:
            number, text, call, tokens = self.server.script.answer(path, self.headers, body, hashlib.sha256(received).hexdigest())
        except ValueError as problem:
            return self.whole(400, {"error": {"type": "invalid_request_error", "message": str(problem)}})
        out = (len(text) + (len(compact(call[1])) if call else 0)) // 4
        if "contents" in body:
            whole, events = content(number, text, call, tokens, out)
        elif "input" in body:
            whole, events = response(number, text, call, tokens, out)
        elif path.endswith("/messages"):
            whole, events = message(number, text, call, tokens, out)
        else:
            whole, events = completion(number, text, call, tokens, out)
        streams = body.get("stream") or path.endswith(":streamGenerateContent")
        return self.stream(events) if streams else self.whole(200, whole)

    def received(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
        return data

    def whole(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            text = f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.write(b"0\r\n\r\n")


def message(number, text, call, tokens, out):
    """Anthropic's messages."""
    usage = {"input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": out}
    content = [{"type": "text", "text": text}]
    if call:
        content.append({"type": "tool_use", "id": f"toolu_{number:04}", "name": call[0], "input": call[1]})
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    whole = {"id": f"msg_{number:04}", "type": "message", "role": "assistant", "model": MODEL}
    whole.update(content=content, usage=usage, **stop)
    begun = dict(whole, content=[], stop_reason=None, usage=dict(usage, output_tokens=1))
    events = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(content):
        if block["type"] == "text":
            begun, delta = dict(block, text=""), {"type": "text_delta", "text": text}
        else:
            begun, delta = dict(block, input={}), {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": out}})
    return whole, events + [{"type": "message_stop"}]


def completion(number, text, call, tokens, out):
    """OpenAI's chat completions."""
    usage = {"prompt_tokens": tokens, "completion_tokens": out, "total_tokens": tokens + out}
    said = {"role": "assistant", "content": text}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        said["tool_calls"] = [{"id": f"call_{number:04}", "type": "function", "function": function}]
    head = {"id": f"chatcmpl-{number:04}", "created": 1, "model": MODEL}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if call else "stop"}
    whole = dict(head, object="chat.completion", choices=[choice], usage=usage)
    chunk = dict(head, object="chat.completion.chunk")
    deltas = [({"role": "assistant", "content": text}, None)]
    deltas += [({"tool_calls": [dict(said["tool_calls"][0], index=0)]}, None)] if call else []
    deltas.append(({}, choice["finish_reason"]))
    events = [dict(chunk, choices=[{"index": 0, "delta": delta, "finish_reason": end}]) for delta, end in deltas]
    return whole, events + [dict(chunk, choices=[], usage=usage), "[DONE]"]


def content(number, text, call, tokens, out):
    """Gemini's generateContent."""
    parts = [{"text": text}]
    if call:
        parts.append({"functionCall": {"name": call[0], "args": call[1]}})
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": out, "totalTokenCount": tokens + out}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": f"resp-{number:04}"}
    return whole, [whole]


def response(number, text, call, tokens, out):
    """OpenAI's responses."""
    usage = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": out}
    usage.update(output_tokens_details={"reasoning_tokens": 0}, total_tokens=tokens + out)
    part = {"type": "output_text", "text": text, "annotations": []}
    items = [{"type": "message", "id": f"msg_{number:04}", "role": "assistant", "status": "completed", "content": [part]}]
    if call:
        item = {"type": "function_call", "id": f"fc_{number:04}", "call_id": f"call_{number:04}", "status": "completed"}
        items.append(dict(item, name=call[0], arguments=json.dumps(call[1])))
    whole = {"id": f"resp_{number:04}", "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
    whole.update(output=items, usage=usage, error=None, incomplete_details=None)
    begun = dict(whole, status="in_progress", output=[], usage=None)
    events = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": index, "item": dict(item, **empty)})
        if item["type"] == "message":
            events += [
                {"type": "response.content_part.added", **at, "content_index": 0, "part": dict(part, text="")},
                {"type": "response.output_text.delta", **at, "content_index": 0, "delta": text},
                {"type": "response.output_text.done", **at, "content_index": 0, "text": text},
            ]
        else:
            events += [
                {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]},
                {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]},
            ]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [dict(event, sequence_number=at) for at, event in enumerate(events)]


class Server(http.server.ThreadingHTTPServer):
    """Listens on a free port of loopback until it is left."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *problem):
        self.shutdown()
        self.script.log.close()
        return super().__exit__(*problem)
