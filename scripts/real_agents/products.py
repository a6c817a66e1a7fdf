"""How each product is installed, set up, asked, and where it keeps its own record of the conversation."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .model import FINISH, MODEL

ANTHROPIC_MODEL = "claude-sonnet-4-5"
# Seconds for one installation, and for one prompt.
INSTALL, PROMPT = 900, 240


class Skipped(Exception):
    """Why a product could not be tried."""


@dataclass
class Place:
    """Folders of one run, and what is set there."""

    run: Path
    programs: Path
    url: str
    window: int
    # Tokens of the newest messages that a summary spares, and events that one conversation may hold, where these can be set.
    keep: int
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
    """A product with its recipe. `ask` runs one prompt, `own` names the file or folder for `proctor import`."""

    name: str
    packages: list
    # Lowest version of Python; none for packages of npm.
    python: tuple = None
    # The command that ends the work, where a last word does not.
    last: str = None
    # The window for small logs: not much larger than its system prompt and tools.
    small: int = 14000
    # Whether one process asks all prompts, and whether one prompt is all it takes.
    together: bool = False
    once: bool = False

    def told(self, window):
        """Overrides of its preset that say what `set_up` tells the product, in brackets."""
        return ""

    @property
    def version(self):
        return self.packages[0].replace("==", "@").rpartition("@")[2]

    def install(self, folder):
        """Installs the pinned packages where that was not done before."""
        stamp, wanted = folder / "installed", "\n".join(self.packages)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        empty(folder)
        if self.python:
            made(find_python(self.python), "-m", "venv", folder)
            made(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *self.packages)
        else:
            made("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder, *self.packages)
        stamp.write_text(wanted)

    def set_up(self, place):
        """Writes the configuration."""

    def ask(self, place, prompt, first):
        raise NotImplementedError

    def own(self, place):
        raise NotImplementedError


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


class Codex(Product):
    def set_up(self, place):
        settings = {
            "model": MODEL,
            "model_provider": "scripted",
            "model_context_window": place.window,
            "approval_policy": "never",
            "sandbox_mode": "danger-full-access",
            "check_for_update_on_startup": False,
            "analytics.enabled": False,
        }
        provider = {"name": "scripted", "base_url": f"{place.url}/v1", "wire_api": "responses", "env_key": "SCRIPTED_KEY"}
        provider.update(request_max_retries=1, stream_max_retries=1)
        settings.update({f"model_providers.scripted.{key}": value for key, value in provider.items()})
        # TOML writes texts, numbers and truth values as JSON does.
        place.write(".codex/config.toml", "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))

    def ask(self, place, prompt, first):
        again = [] if first else ["resume", "--last"]
        command = [place.programs / "node_modules/.bin/codex", "exec", *again, "--skip-git-repo-check", prompt]
        do(command, place, {"CODEX_HOME": str(place.home / ".codex"), "SCRIPTED_KEY": "none"})

    def own(self, place):
        return place.one("home/.codex/sessions/**/rollout-*.jsonl")


class Pi(Product):
    def told(self, window):
        when = '{ any = ["manual", { all = ["typed", { reserve_tokens = %d }] }], counter = "usage" }' % (window // 10)
        return f"[summarize.when={when},summarize.keep_last_tokens={window // 5}]"

    def set_up(self, place):
        model = {"id": MODEL, "name": MODEL, "reasoning": False, "input": ["text"], "contextWindow": place.window}
        model.update(maxTokens=4096, cost=dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0))
        provider = {"baseUrl": place.url, "api": "anthropic-messages", "apiKey": "none", "models": [model]}
        place.write(".pi/agent/models.json", {"providers": {"scripted": provider}})
        compaction = {"enabled": True, "reserveTokens": place.window // 10, "keepRecentTokens": place.keep}
        place.write(".pi/agent/settings.json", {"compaction": compaction, "quietStartup": True})

    def ask(self, place, prompt, first):
        command = [place.programs / "node_modules/.bin/pi", "-p", *([] if first else ["-c"])]
        command += ["--provider", "scripted", "--model", MODEL, prompt]
        do(command, place, {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"})

    def own(self, place):
        return place.one("home/.pi/agent/sessions/**/*.jsonl")


class OpenCode(Product):
    quiet = {f"OPENCODE_DISABLE_{what}": "1" for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}

    def told(self, window):
        # It keeps the tokens of an answer free.
        when = '{ any = ["manual", { reserve_tokens = %d }], counter = "last_usage" }' % (window // 10)
        return f"[summarize.when={when}]"

    def set_up(self, place):
        model = {"name": MODEL, "tool_call": True, "limit": {"context": place.window, "output": place.window // 10}}
        provider = {"npm": "@ai-sdk/anthropic", "name": "scripted", "models": {MODEL: model}}
        provider["options"] = {"baseURL": f"{place.url}/v1", "apiKey": "none"}
        settings = {"autoupdate": False, "share": "disabled", "snapshot": False, "permission": {"bash": "allow"}}
        settings.update(compaction={"auto": True, "prune": True}, provider={"scripted": provider})
        settings.update(dict.fromkeys(("model", "small_model"), f"scripted/{MODEL}"))
        place.write(".config/opencode/opencode.json", settings)

    def program(self, place):
        return place.programs / "node_modules/.bin/opencode"

    def ask(self, place, prompt, first):
        command = [self.program(place), "run", *([] if first else ["-c"]), "-m", f"scripted/{MODEL}", prompt]
        do(command, place, self.quiet)

    def own(self, place):
        listed, exported = place.run / "sessions.json", place.run / "export.json"
        do([self.program(place), "session", "list", "--format", "json"], place, self.quiet, out=listed)
        [session] = json.loads(listed.read_text())
        do([self.program(place), "export", session["id"]], place, self.quiet, out=exported)
        return exported


class QwenCode(Product):
    def set_up(self, place):
        model = {"name": MODEL, "generationConfig": {"contextWindowSize": place.window}}
        settings = {"telemetry": {"enabled": False}, "privacy": {"usageStatisticsEnabled": False}, "model": model}
        settings.update(general={"disableAutoUpdate": True}, security={"auth": {"selectedType": "openai"}})
        place.write(".qwen/settings.json", settings)

    def ask(self, place, prompt, first):
        more = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_MODEL": MODEL}
        command = [place.programs / "node_modules/.bin/qwen", "--yolo", "--auth-type", "openai"]
        do([*command, *([] if first else ["--continue"]), "-p", prompt], place, more)

    def own(self, place):
        return place.one("home/.qwen/projects/*/chats/*.jsonl")


LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}

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

    def own(self, place):
        return place.one("conversation/*")


class MiniSweAgent(Product):
    def ask(self, place, prompt, first):
        more = {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_BASE_URL": f"{place.url}/v1"}
        more.update(MSWEA_CONFIGURED="true", MSWEA_COST_TRACKING="ignore_errors", MSWEA_SILENT_STARTUP="1")
        more["MSWEA_GLOBAL_CONFIG_DIR"] = str(place.home / "mini")
        command = [place.programs / "bin/mini", "-m", f"openai/{MODEL}", "-t", prompt, "-y", "--exit-immediately"]
        do([*command, "-o", place.run / "trajectory.json"], place, dict(LITELLM, **more))

    def own(self, place):
        return place.one("trajectory.json")


PRODUCTS = [
    Codex("codex", ["@openai/codex@0.169.0"]),
    Pi("pi", ["@mariozechner/pi-coding-agent@0.73.1"], small=6000),
    OpenCode("opencode", ["opencode-ai@1.18.33"], small=12000),
    QwenCode("qwen-code", ["@qwen-code/qwen-code@0.15.10"], small=32000),
    OpenHands("openhands", ["openhands-sdk==1.58.0", "openhands-tools==1.58.0"], python=(3, 12), together=True),
    # Does not compact. Without `mcp`, its LiteLLM fails at the first request.
    MiniSweAgent("mini-swe-agent", ["mini-swe-agent==2.4.6", "mcp"], python=(3, 10), last=FINISH, once=True),
]
