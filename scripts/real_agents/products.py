"""How each product is installed, set up, asked, and where it keeps its own record of the conversation."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .model import FINISH, MODEL

ANTHROPIC_MODEL = "claude-sonnet-4-5"
# Seconds for one installation, and for one prompt.
INSTALL, PROMPT = 900, 600


class Skipped(Exception):
    """Why a product could not be tried."""


@dataclass
class Place:
    """Folders of one run, and what is set there."""

    run: Path
    programs: Path
    url: str
    window: int
    # Events that one conversation may hold, where this can be set.
    events: int

    home = property(lambda self: self.run / "home")
    work = property(lambda self: self.run / "work")

    def environment(self):
        names = ("PATH", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
        env = {name: os.environ[name] for name in names if name in os.environ}
        xdg = {"CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state", "CACHE": ".cache"}
        env.update({f"XDG_{name}_HOME": str(self.home / folder) for name, folder in xdg.items()})
        return dict(env, HOME=str(self.home), NO_COLOR="1", TERM="dumb")

    def write(self, path, content):
        """A file under the home folder: text, or what becomes JSON."""
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def one(self, pattern):
        """The only path under the run's folder that matches; the newest, if there are several."""
        found = sorted(self.run.glob(pattern), key=lambda path: path.stat().st_mtime)
        if not found:
            raise RuntimeError(f"no file `{pattern}`")
        return found[-1]


def do(command, place, more=None, limit=PROMPT, out=None):
    """Runs a program of the product in the work folder; its output is appended to the run's log."""
    env = dict(place.environment(), **(more or {}))
    with open(place.run / "agent.log", "ab") as log, open(out or os.devnull, "wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=place.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output if out else log,
            stderr=log,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = f"none within {limit} s"
        finally:
            # What it may have left running is in the group that it leads.
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()
    if code:
        end = (place.run / "agent.log").read_text(errors="replace").strip().splitlines()[-3:]
        raise RuntimeError(f"`{Path(str(command[0])).name}` ended with {code}: {' / '.join(end)}")


@dataclass
class Product:
    """A product with its recipe. In words, files, variables and overrides `<url>`, `<window>` and other names are filled in."""

    name: str
    # The newest are installed, or those that are known.
    packages: list
    known: list = None
    # Lowest version of Python; none for packages of npm.
    python: tuple = None
    program: str = ""
    # The words of a prompt; from the second on those of `again` are in the place of `<again>`.
    words: list = field(default_factory=list)
    again: list = field(default_factory=list)
    files: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    # A command before the first prompt, if anything.
    before: list = None
    # The product's own record, as a pattern under the run's folder.
    own_files: str = ""
    # The window that it believes in, and the characters of a file that it reads.
    window: int = 40000
    characters: int = 8000
    # Its preset with what the product was told, and the model's window where that is not what it was told.
    preset: str = ""
    model_window: int = None
    # Why its preset compacts elsewhere after the first time, or what the product never does.
    differs: str = ""
    # The command that ends the work, where a last word does not.
    last: str = None
    # The window for small logs: not much larger than its system prompt and tools.
    small: int = 14000
    # Whether one process asks all prompts, and whether one prompt is all it takes.
    together: bool = False
    once: bool = False

    def version(self, programs):
        """The version that is installed."""
        name = self.packages[0]
        if not self.python:
            return json.loads((programs / "node_modules" / name / "package.json").read_text())["version"]
        asked = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
        return subprocess.run([programs / "bin/python", "-c", asked], capture_output=True, text=True).stdout.strip()

    def install(self, folder, known=False):
        """Installs the packages where that was not done before."""
        packages = self.known if known else self.packages
        stamp, wanted = folder / "installed", "\n".join(packages)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        empty(folder)
        if self.python:
            made(find_python(self.python), "-m", "venv", folder)
            made(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)
        else:
            made("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder, *packages)
        stamp.write_text(wanted)

    def run(self, words, place, prompt="", out=None):
        folder = "bin" if self.python else "node_modules/.bin"
        command = [place.programs / folder / self.program, *fill(words, place, prompt)]
        variables = {name: str(value) for name, value in fill(self.variables, place).items()}
        do(command, place, variables, out=out)

    def set_up(self, place):
        for path, content in self.files.items():
            place.write(path, fill(content, place))
        if self.before:
            self.run(self.before, place)

    def ask(self, place, prompt, first):
        again = [] if first else self.again
        self.run([more for word in self.words for more in (again if word == "<again>" else [word])], place, prompt)

    def own(self, place):
        return place.one(self.own_files)


def fill(value, place, prompt=""):
    """A value of JSON with the names in angle brackets filled in; a text that is one number's name becomes the number."""
    said = {"url": place.url, "home": place.home, "work": place.work, "run": place.run, "model": MODEL, "prompt": prompt}
    window = place.window
    numbers = {"window": window, "tenth": window // 10, "fifth": window // 5, "share": window / 2**20}
    text = json.dumps(value)
    for name, value in numbers.items():
        text = text.replace(f'"<{name}>"', str(value)).replace(f"<{name}>", str(value))
    for name, value in said.items():
        text = text.replace(f"<{name}>", json.dumps(str(value))[1:-1])
    return json.loads(text)


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def made(*command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=INSTALL)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Skipped(f"{Path(str(command[0])).name}: {problem}") from problem
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["failed"]
        said = [line for line in lines if "error" in line.lower() and "complete log" not in line] or lines
        said = [line for line in said if "Error: " in line] or said
        raise Skipped(f"{Path(str(command[0])).name}: {said[-1]}")


def find_python(least):
    """A Python of at least this version."""
    ask = f"import sys; sys.exit(sys.version_info < {least})"
    for name in (sys.executable, "python3", "python3.14", "python3.13", "python3.12"):
        if shutil.which(name) and subprocess.run([name, "-c", ask], capture_output=True).returncode == 0:
            return name
    raise Skipped(f"no Python {'.'.join(map(str, least))}")


def newest_node(cache):
    """Puts a Node that the newest agents take in front of the one that is here; npm installs an older agent under an older Node."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
    if int(said.strip().lstrip("v").partition(".")[0] or 0) < 24:
        Product("node", ["node@24"]).install(cache / "node")
        os.environ["PATH"] = f"{cache / 'node/node_modules/node/bin'}{os.pathsep}{os.environ['PATH']}"


class OpenCode(Product):
    """Its own record is in a database: the session is exported."""

    def own(self, place):
        listed, exported = place.run / "sessions.json", place.run / "export.json"
        self.run(["session", "list", "--format", "json"], place, out=listed)
        [session] = json.loads(listed.read_text())
        self.run(["export", session["id"]], place, out=exported)
        return exported


# Run by the product's own Python: one conversation that condenses by the number of its events.
CONVERSATION = """
import sys
from openhands.sdk import Agent, Conversation, LLM, Tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr
model, url, work, kept, events, *prompts = sys.argv[1:]
llm = LLM(model=model, base_url=url, api_key=SecretStr("none"), usage_id="agent", num_retries=0)
condenser = LLMSummarizingCondenser(llm=llm.model_copy(update={"usage_id": "condenser"}), max_size=int(events), keep_first=2)
agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)], condenser=condenser)
conversation = Conversation(agent=agent, workspace=work, persistence_dir=kept, visualizer=None)
for prompt in prompts:
    conversation.send_message(prompt)
    conversation.run()
"""


class OpenHands(Product):
    """The SDK, with a program of ours around it; all prompts are asked in one process."""

    def ask(self, place, prompt, first):
        place.write("conversation.py", CONVERSATION)
        command = [place.programs / "bin/python", place.home / "conversation.py", f"anthropic/{ANTHROPIC_MODEL}"]
        command += [place.url, place.work, place.run / "conversation", place.events, *prompt]
        do(command, place, LITELLM)


LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
OPENAI = {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": "<url>/v1", "OPENAI_BASE_URL": "<url>/v1"}
CLAUDE = {"ANTHROPIC_BASE_URL": "<url>", "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
CLAUDE.update(dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"), "1"))
CLAUDE.update(CLAUDE_CODE_AUTO_COMPACT_WINDOW="<window>")
CODEX = """model = "<model>"
model_provider = "scripted"
model_context_window = <window>
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
analytics.enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "<url>/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
"""
GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
GEMINI.update(privacy={"usageStatisticsEnabled": False}, telemetry={"enabled": False}, general={"enableAutoUpdate": False})
# Its window is that of the model, 2^20 tokens: the share is what can be set.
GEMINI.update(model={"name": "gemini-2.5-pro", "compressionThreshold": "<share>"})
KIMI = """default_model = "scripted"
telemetry = false
[models.scripted]
provider = "scripted"
model = "<model>"
max_context_size = <window>
[providers.scripted]
type = "openai"
base_url = "<url>/v1"
api_key = "none"
"""
PI_MODEL = {"id": MODEL, "name": MODEL, "reasoning": False, "input": ["text"], "contextWindow": "<window>", "maxTokens": 4096}
PI_MODEL.update(cost=dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0))
PI_PROVIDER = {"baseUrl": "<url>", "api": "anthropic-messages", "apiKey": "none", "models": [PI_MODEL]}
PI = {"compaction": {"enabled": True, "reserveTokens": "<tenth>", "keepRecentTokens": "<fifth>"}, "quietStartup": True}
OPENCODE = {"npm": "@ai-sdk/anthropic", "name": "scripted", "options": {"baseURL": "<url>/v1", "apiKey": "none"}}
OPENCODE.update(models={MODEL: {"name": MODEL, "tool_call": True, "limit": {"context": "<window>", "output": "<tenth>"}}})
OPENCODE = {"provider": {"scripted": OPENCODE}, "compaction": {"auto": True, "prune": True}, "permission": {"bash": "allow"}}
OPENCODE.update(autoupdate=False, share="disabled", snapshot=False)
OPENCODE.update(dict.fromkeys(("model", "small_model"), f"scripted/{MODEL}"))
QWEN = {"name": MODEL, "generationConfig": {"contextWindowSize": "<window>"}}
QWEN = {"telemetry": {"enabled": False}, "privacy": {"usageStatisticsEnabled": False}, "model": QWEN}
QWEN.update(general={"disableAutoUpdate": True}, security={"auth": {"selectedType": "openai"}})

PRODUCTS = [
    Product(
        "codex", ["@openai/codex"], known=["@openai/codex@0.171.0"], program="codex", preset="codex",
        files={".codex/config.toml": CODEX}, variables={"CODEX_HOME": "<home>/.codex", "SCRIPTED_KEY": "none"},
        words=["exec", "<again>", "--skip-git-repo-check", "<prompt>"], again=["resume", "--last"],
        own_files="home/.codex/sessions/**/rollout-*.jsonl",
    ),
    # Its least window is 100,000.
    Product(
        "claude-code", ["@anthropic-ai/claude-code"], known=["@anthropic-ai/claude-code@2.1.332"], program="claude",
        files={".claude.json": {"hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True}}, variables=CLAUDE,
        words=["-p", "<again>", "--dangerously-skip-permissions", "<prompt>"], again=["-c"],
        own_files="home/.claude/projects/*/*.jsonl", window=100000, characters=14000, small=100000,
        # 13,000 tokens before the end, and 20,000 for a summary.
        preset="claude-code[summarize.when.reserve_tokens=33000]",
        differs="files that come back have line numbers there, and it takes the newest result for larger",
    ),
    Product(
        "gemini-cli", ["@google/gemini-cli"], known=["@google/gemini-cli@0.61.0"], program="gemini",
        files={".gemini/settings.json": GEMINI},
        variables={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "<url>", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        words=["-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "<again>", "-p", "<prompt>"], again=["-r", "latest"],
        own_files="home/.gemini/tmp/*/chats/*.json*", model_window=2**20,
        preset="gemini-cli[summarize.when.window_fraction=<share>]",
    ),
    Product(
        "kimi-code", ["@moonshot-ai/kimi-code"], known=["@moonshot-ai/kimi-code@2.1.0"], program="kimi",
        differs="at call 21 a reminder comes in with the prompt, and is summarised before a call has it",
        files={".kimi-code/config.toml": KIMI}, variables={"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"},
        words=["<again>", "-p", "<prompt>"], again=["--continue"], own_files="home/.kimi-code/sessions/wd_*/session_*",
        preset="kimi-code",
    ),
    # The window is that of a model that it does not know; a session goes on in a terminal alone.
    Product(
        "cline", ["cline"], known=["cline@3.0.65"], program="cline", variables={"CLINE_TELEMETRY_DISABLED": "1"},
        before=["auth", "--provider", "openai", "--apikey", "none", "--modelid", "<model>", "--baseurl", "<url>/v1"],
        words=["--yolo", "<prompt>"], once=True, own_files="home/.cline/data/sessions", window=128000, characters=16000,
        small=128000, preset="cline",
        differs="it counts the JSON around the texts; with the next prompt it counts what was summarised once more",
    ),
    Product(
        "pi", ["@earendil-works/pi-coding-agent"], known=["@earendil-works/pi-coding-agent@1.6.0"], program="pi", small=6000,
        files={".pi/agent/models.json": {"providers": {"scripted": PI_PROVIDER}}, ".pi/agent/settings.json": PI},
        variables={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
        words=["-p", "<again>", "--provider", "scripted", "--model", MODEL, "<prompt>"], again=["-c"],
        own_files="home/.pi/agent/sessions/**/*.jsonl",
        preset="pi[summarize.when.reserve_tokens=<tenth>,summarize.keep_last_tokens=<fifth>]",
    ),
    OpenCode(
        "opencode", ["opencode-ai"], known=["opencode-ai@1.18.33"], program="opencode", small=12000,
        files={".config/opencode/opencode.json": OPENCODE},
        variables={f"OPENCODE_DISABLE_{it}": "1" for it in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")},
        words=["run", "<again>", "-m", f"scripted/{MODEL}", "<prompt>"], again=["-c"],
        preset="opencode[summarize.when.reserve_tokens=<tenth>]",
    ),
    # It keeps 33,000 tokens free, and its system prompt and tools have 19,000.
    Product(
        "qwen-code", ["@qwen-code/qwen-code"], known=["@qwen-code/qwen-code@0.24.4"], program="qwen", window=80000, small=60000,
        files={".qwen/settings.json": QWEN}, variables=dict(OPENAI, OPENAI_MODEL=MODEL),
        words=["--yolo", "--auth-type", "openai", "<again>", "-p", "<prompt>"], again=["--continue"],
        own_files="home/.qwen/projects/*/chats/*.jsonl", preset="qwen-code",
        differs="its first words come back one call later, and its own file does not have them",
    ),
    OpenHands(
        "openhands-sdk", ["openhands-sdk", "openhands-tools"], known=["openhands-sdk==1.58.2", "openhands-tools==1.58.2"],
        python=(3, 12), together=True, own_files="conversation/*",
        # At most 24 events, of which the first is the system prompt; half of them, less the first two, the summary and a result.
        preset="openhands[summarize.when.messages_over=23,summarize.keep_first_messages=1,summarize.keep_last_messages=8]",
    ),
    # Without `mcp`, its LiteLLM fails at the first request.
    Product(
        "mini-swe-agent", ["mini-swe-agent", "mcp"], known=["mini-swe-agent==2.4.6", "mcp"], python=(3, 10), program="mini",
        variables=dict(
            OPENAI, **LITELLM, MSWEA_CONFIGURED="true", MSWEA_COST_TRACKING="ignore_errors", MSWEA_SILENT_STARTUP="1",
            MSWEA_GLOBAL_CONFIG_DIR="<home>/mini",
        ),
        words=["-m", "openai/<model>", "-t", "<prompt>", "-y", "--exit-immediately", "-o", "<run>/trajectory.json"],
        last=FINISH, once=True, own_files="trajectory.json",
    ),
]
