"""A small coding agent: three tools, one loop, and the whole history with every request.

It never compacts its history: that is left to whatever listens at the base URL.
"""
import argparse
import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

SYSTEM = """You are a programmer who works in a repository with the tools bash, read and edit.
Commands run in the folder of the repository. Work step by step, run the tests of the repository,
and answer without a tool call once the work is done."""
TOOLS = {
    "bash": ("Runs a shell command, returns its output, and ends what it left in the background.",
             {"command": "The command"}),
    "read": ("Returns the text of a file.", {"path": "Path below the repository"}),
    "edit": (
        "Replaces the one occurrence of a text in a file. An empty old text writes the whole file.",
        {"path": "Path below the repository", "old": "Text to replace", "new": "Text instead"},
    ),
}
LONGEST_RESULT = 12_000
LONGEST_FILE = 48_000
LONGEST_ANSWER = 16_000_000
SECONDS_PER_COMMAND = 60
PAUSES = (0.2, 1, 3)
EXIT_REFUSED = 3
EXIT_TOO_MANY_CALLS = 4
EXIT_UNAVAILABLE = 5


def schema(parameters):
    properties = {name: {"type": "string", "description": text} for name, text in parameters.items()}
    return {"type": "object", "properties": properties, "required": list(parameters)}


class Anthropic:
    """The messages API."""

    path = "/v1/messages"

    def __init__(self, options):
        self.headers = {"anthropic-version": "2023-06-01"}
        tools = [{"name": name, "description": text, "input_schema": schema(parameters)}
                 for name, (text, parameters) in TOOLS.items()]
        self.fixed = {"model": options.model, "max_tokens": 4096, "system": SYSTEM, "tools": tools,
                      "metadata": {"user_id": options.user}}

    def body(self, messages):
        return dict(self.fixed, messages=messages)

    def message(self, answer):
        return {"role": "assistant", "content": answer["content"]}

    def calls(self, message):
        content = message["content"]
        blocks = content if isinstance(content, list) else []
        return [(block["id"], block["name"], block["input"]) for block in blocks
                if block["type"] == "tool_use"]

    def results(self, results):
        return [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results]}]


class OpenAI:
    """The chat completions API."""

    path = "/v1/chat/completions"

    def __init__(self, options):
        self.headers = {}
        tools = [{"type": "function", "function": {
            "name": name, "description": text, "parameters": schema(parameters)}}
            for name, (text, parameters) in TOOLS.items()]
        self.fixed = {"model": options.model, "tools": tools, "user": options.user}

    def body(self, messages):
        return dict(self.fixed, messages=[{"role": "system", "content": SYSTEM}] + messages)

    def message(self, answer):
        return answer["choices"][0]["message"]

    def calls(self, message):
        return [(call["id"], call["function"]["name"], arguments(call["function"]["arguments"]))
                for call in message.get("tool_calls") or []]

    def results(self, results):
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, text in results]


def arguments(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


class Refused(Exception):
    """The API does not answer this request."""


class Unavailable(Refused):
    """The API answers no request: it is busy, cannot be reached, or wants another key."""


# The API is on this machine, whatever proxy the environment names.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(url, headers, body):
    """The answer to one request. Failures that may pass are tried again after a pause."""
    data = json.dumps(body).encode()
    headers = dict(headers, **{"content-type": "application/json"})
    for pause in PAUSES + (None,):
        try:
            request = urllib.request.Request(url, data, headers)
            with DIRECT.open(request, timeout=600) as answer:
                return json.loads(answer.read(LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            why = "%d: %s" % (error.code, error.read(2000).decode("utf-8", "replace"))
            passing = error.code in (408, 429) or error.code >= 500
            refusal = Unavailable if passing or error.code in (401, 402, 403, 404) else Refused
        except (OSError, http.client.HTTPException) as error:
            why, passing, refusal = str(error), True, Unavailable
        except (ValueError, RecursionError) as error:
            why, passing, refusal = "no JSON: %s" % error, True, Refused
        if not passing or pause is None:
            raise refusal(why)
        time.sleep(pause)


class Tools:
    """Executes tool calls in a folder."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        # What is opened below it stays below it, whatever is renamed meanwhile.
        self.below = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        # Bytecode would outlive an edit that keeps a file's size.
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath), "HOME": self.folder, "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

    def run(self, name, given):
        if name not in TOOLS:
            return "error: no tool `%s`" % name
        wanted = TOOLS[name][1]
        if not isinstance(given, dict) or any(not isinstance(given.get(key), str) for key in wanted):
            return "error: `%s` needs %s, as strings" % (name, ", ".join(wanted))
        try:
            text = getattr(self, name)(*(given[key] for key in wanted))
        except (OSError, ValueError) as error:
            text = "error: %s" % error
        # The folder has another name in each run; the model sees one.
        text = text.replace(self.folder, "/app")
        if len(text) > LONGEST_RESULT:
            half = LONGEST_RESULT // 2
            text = text[:half] + "\n[%d characters cut]\n" % (len(text) - 2 * half) + text[-half:]
        return text

    def bash(self, command):
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=self.folder, env=self.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        chunks = [b"", b""]

        def collect():
            while True:
                chunk = process.stdout.read1(65536)
                if not chunk:
                    return
                if len(chunks[0]) < LONGEST_RESULT * 4:
                    chunks[0] += chunk
                else:
                    chunks[1] = (chunks[1] + chunk)[-LONGEST_RESULT * 4:]

        reader = threading.Thread(target=collect, daemon=True)
        reader.start()
        try:
            reader.join(SECONDS_PER_COMMAND)
            late = reader.is_alive()
            code = None if late else process.wait()
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        text = b"".join(chunks).decode("utf-8", "replace")
        if late:
            return text + "\n[stopped after %d seconds]" % SECONDS_PER_COMMAND
        return text + ("\n[exit code %d]" % code if code else "") or "[no output]"

    def open(self, path, flags):
        """Opens a regular file of the repository. No link is followed, and no FIFO waited for."""
        parts = [part for part in path.removeprefix("/app/").split("/") if part not in ("", ".")]
        if not parts or ".." in parts or path.startswith("/") and not path.startswith("/app/"):
            raise ValueError("`%s` is not in the repository" % path)
        at = os.dup(self.below)
        try:
            for part in parts[:-1]:
                if flags & os.O_CREAT and part not in os.listdir(at):
                    os.mkdir(part, dir_fd=at)
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = below
            file = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644, dir_fd=at)
        finally:
            os.close(at)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise ValueError("`%s` is no regular file" % path)
        return file

    def read(self, path):
        with os.fdopen(self.open(path, os.O_RDONLY), "rb") as file:
            return file.read(LONGEST_FILE).decode("utf-8", "replace") or "[empty]"

    def edit(self, path, old, new):
        old, new = old.encode(), new.encode()
        with os.fdopen(self.open(path, os.O_RDWR | (0 if old else os.O_CREAT)), "r+b") as file:
            if old:
                text = file.read(LONGEST_FILE + 1)
                if len(text) > LONGEST_FILE:
                    raise ValueError("`%s` is longer than %d bytes" % (path, LONGEST_FILE))
                if text.count(old) != 1:
                    raise ValueError("the old text occurs %d times in `%s`" % (text.count(old), path))
                new = text.replace(old, new)
            file.seek(0)
            file.truncate()
            file.write(new)
        return "edited %s" % path


def end_with_input():
    """Ends this program with its standard input, and so with whatever started it."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="base URL of the API")
    parser.add_argument("--api", choices=["anthropic", "openai"], default="anthropic")
    parser.add_argument("--model", required=True)
    parser.add_argument("--work", required=True, help="folder of the repository")
    parser.add_argument("--prompt-file", required=True)
    parser.add_argument("--user", default="", help="id of the conversation")
    parser.add_argument("--max-calls", type=int, default=120)
    options = parser.parse_args()
    # Ends the command that is running, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=end_with_input, daemon=True).start()
    api = (OpenAI if options.api == "openai" else Anthropic)(options)
    tools = Tools(options.work)
    base = options.url.rstrip("/")
    url = (base[:-3] if base.endswith("/v1") else base) + api.path
    with open(options.prompt_file, encoding="utf-8") as file:
        messages = [{"role": "user", "content": file.read()}]
    calls, code = 0, EXIT_TOO_MANY_CALLS
    while calls < options.max_calls:
        try:
            message = api.message(post(url, api.headers, api.body(messages)))
        except Refused as error:
            print("the API refused: %s" % " ".join(str(error).split()), file=sys.stderr)
            code = EXIT_UNAVAILABLE if isinstance(error, Unavailable) else EXIT_REFUSED
            break
        calls += 1
        messages.append(message)
        results = [(call, tools.run(name, given)) for call, name, given in api.calls(message)]
        if not results:
            code = 0
            break
        messages += api.results(results)
    return code


if __name__ == "__main__":
    sys.exit(main())
