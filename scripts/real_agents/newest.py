"""The newest agents: how each is installed, set up and asked once."""

import json
import platform
from dataclasses import dataclass, field

from . import model, products

# What packages of programs for one platform are named by.
MACHINE = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
NATIVE = f"{platform.system().lower()}-{MACHINE}"


@dataclass
class Recipe(products.Product):
    """A product that some files and variables set up; `<url>`, `<home>`, `<work>`, `<model>` and `<prompt>` are filled in."""

    program: str = ""
    words: list = field(default_factory=list)
    files: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    # What is run before the question, if anything.
    before: list = None

    def filled(self, value, place, prompt=""):
        said = {"url": place.url, "home": place.home, "work": place.work, "model": model.MODEL, "prompt": prompt}
        text = json.dumps(value)
        for name, value in said.items():
            text = text.replace(f"<{name}>", json.dumps(str(value))[1:-1])
        return json.loads(text)

    def run(self, words, place, prompt=""):
        folder = "bin" if self.python else "node_modules/.bin"
        command = [place.programs / folder / self.program, *self.filled(words, place, prompt)]
        products.do(command, place, self.filled(self.variables, place))

    def set_up(self, place):
        for path, content in self.files.items():
            place.write(path, self.filled(content, place))
        if self.before:
            self.run(self.before, place)

    def ask(self, place, prompt, first):
        self.run(self.words, place, prompt)


OPENAI = {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": "<url>/v1", "OPENAI_BASE_URL": "<url>/v1"}
CLAUDE = {"ANTHROPIC_BASE_URL": "<url>", "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
CLAUDE.update(dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"), "1"))
GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
GEMINI.update(privacy={"usageStatisticsEnabled": False}, telemetry={"enabled": False}, general={"enableAutoUpdate": False})
KIMI = """default_model = "scripted"
telemetry = false
[models.scripted]
provider = "scripted"
model = "<model>"
max_context_size = 100000
[providers.scripted]
type = "openai"
base_url = "<url>/v1"
api_key = "none"
"""
GROK = """[models]
default = "scripted"
[model.scripted]
model = "<model>"
base_url = "<url>/v1"
name = "scripted"
env_key = "XAI_API_KEY"
context_window = 100000
"""
CLAW_MODEL = {"id": model.MODEL, "name": "scripted", "input": ["text"], "contextWindow": 100000, "maxTokens": 4096}
CLAW_PROVIDER = {"baseUrl": "<url>/v1", "apiKey": "none", "api": "openai-completions", "models": [CLAW_MODEL]}
CLAW = {"models": {"mode": "merge", "providers": {"scripted": CLAW_PROVIDER}}, "update": {"checkOnStart": False}}
CLAW["agents"] = {"defaults": {"model": {"primary": "scripted/<model>"}, "workspace": "<work>", "skipBootstrap": True}}
DROID_MODEL = {"model": "<model>", "displayName": "scripted", "baseUrl": "<url>/v1", "apiKey": "none"}
DROID = {"customModels": [dict(DROID_MODEL, provider="generic-chat-completion-api", maxOutputTokens=4096)]}
COPILOT = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": "<url>/v1", "COPILOT_PROVIDER_API_KEY": "none"}

AGENTS = [
    Recipe("claude-code", ["@anthropic-ai/claude-code"], program="claude", variables=CLAUDE,
           files={".claude.json": {"hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True}},
           words=["-p", "--dangerously-skip-permissions", "<prompt>"]),
    products.Codex("codex", ["@openai/codex"]),
    Recipe("gemini-cli", ["@google/gemini-cli"], program="gemini", files={".gemini/settings.json": GEMINI},
           variables={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "<url>", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
           words=["-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "-p", "<prompt>"]),
    products.QwenCode("qwen-code", ["@qwen-code/qwen-code"]),
    products.OpenCode("opencode", ["opencode-ai"]),
    products.Pi("pi", ["@earendil-works/pi-coding-agent"]),
    Recipe("cline", ["cline"], program="cline", variables={"CLINE_TELEMETRY_DISABLED": "1"}, words=["--yolo", "<prompt>"],
           before=["auth", "--provider", "openai", "--apikey", "none", "--modelid", "<model>", "--baseurl", "<url>/v1"]),
    Recipe("kimi-code", ["@moonshot-ai/kimi-code"], program="kimi", files={".kimi-code/config.toml": KIMI},
           variables={"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"}, words=["-p", "<prompt>"]),
    Recipe("copilot-cli", ["@github/copilot"], program="copilot", words=["-p", "<prompt>", "--allow-all-tools"],
           variables=dict(COPILOT, COPILOT_MODEL=model.MODEL, COPILOT_AUTO_UPDATE="false")),
    Recipe("grok-build", ["@xai-official/grok"], program="grok", files={".grok/config.toml": GROK},
           variables={"XAI_API_KEY": "none", "GROK_DISABLE_AUTOUPDATER": "1", "GROK_TELEMETRY_ENABLED": "false"},
           words=["-p", "<prompt>", "-m", "scripted", "--always-approve"]),
    Recipe("factory-droid", ["@factory/cli", f"@factory/cli-{NATIVE}"], program="droid", files={".factory/settings.json": DROID},
           variables={"FACTORY_API_KEY": "fk-none"}, words=["exec", "-m", "custom:scripted-0", "--auto", "high", "<prompt>"]),
    Recipe("amp", ["@ampcode/cli", f"@ampcode/cli-{NATIVE}"], program="amp", words=["-x", "<prompt>"],
           variables={"AMP_URL": "<url>", "AMP_API_KEY": "none", "AMP_SKIP_UPDATE_CHECK": "1"}),
    Recipe("crush", ["@charmland/crush"], program="crush", words=["run", "<prompt>"], variables=OPENAI),
    Recipe("iflow", ["@iflow-ai/iflow-cli"], program="iflow", words=["-p", "<prompt>"], variables=OPENAI),
    Recipe("openclaw", ["openclaw"], program="openclaw", files={".openclaw/openclaw.json": CLAW},
           words=["agent", "--local", "--session-id", "first", "--message", "<prompt>"]),
    Recipe("aider", ["aider-chat"], python=(3, 10), program="aider", variables=dict(OPENAI, **products.LITELLM),
           words=["--model", "openai/<model>", "--yes-always", "--no-check-update", "--analytics-disable", "--no-git",
                  "--no-show-model-warnings", "--message", "<prompt>", "data/settings_00.txt"]),
    Recipe("openhands", ["openhands"], python=(3, 12), program="openhands", words=["--headless", "--override-with-envs", "-t", "<prompt>"],
           variables=dict(products.LITELLM, LLM_MODEL="openai/<model>", LLM_BASE_URL="<url>/v1", LLM_API_KEY="none")),
    Recipe("kimi-cli", ["kimi-cli"], python=(3, 12), program="kimi", files={".kimi/config.toml": KIMI}, words=["--print", "-p", "<prompt>"]),
    Recipe("mini-swe-agent", ["mini-swe-agent", "mcp"], python=(3, 10), program="mini", last=model.FINISH,
           variables=dict(OPENAI, **products.LITELLM, MSWEA_CONFIGURED="true", MSWEA_COST_TRACKING="ignore_errors"),
           words=["-m", "openai/<model>", "-y", "--exit-immediately", "-t", "<prompt>"]),
]

# Products of which `docs/formats.md` reads files, and whose programs no registry of packages has.
NO_PACKAGE = ["Claude Desktop", "Copilot Chat", "Cursor's agent", "goose", "Roo Code", "SpecStory", "SWE-agent"]
