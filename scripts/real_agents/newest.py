"""The newest agents: how each is installed, set up and asked once."""

import platform

from . import model
from .products import LITELLM, OPENAI, PRODUCTS, Product

# What packages of programs for one platform are named by.
MACHINE = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
NATIVE = f"{platform.system().lower()}-{MACHINE}"


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
    *PRODUCTS,
    Product("copilot-cli", ["@github/copilot"], program="copilot", words=["-p", "<prompt>", "--allow-all-tools"],
           variables=dict(COPILOT, COPILOT_MODEL=model.MODEL, COPILOT_AUTO_UPDATE="false")),
    Product("grok-build", ["@xai-official/grok"], program="grok", files={".grok/config.toml": GROK},
           variables={"XAI_API_KEY": "none", "GROK_DISABLE_AUTOUPDATER": "1", "GROK_TELEMETRY_ENABLED": "false"},
           words=["-p", "<prompt>", "-m", "scripted", "--always-approve"]),
    Product("factory-droid", ["@factory/cli", f"@factory/cli-{NATIVE}"], program="droid", files={".factory/settings.json": DROID},
           variables={"FACTORY_API_KEY": "fk-none"}, words=["exec", "-m", "custom:scripted-0", "--auto", "high", "<prompt>"]),
    Product("amp", ["@ampcode/cli", f"@ampcode/cli-{NATIVE}"], program="amp", words=["-x", "<prompt>"],
           variables={"AMP_URL": "<url>", "AMP_API_KEY": "none", "AMP_SKIP_UPDATE_CHECK": "1"}),
    Product("crush", ["@charmland/crush"], program="crush", words=["run", "<prompt>"], variables=OPENAI),
    Product("iflow", ["@iflow-ai/iflow-cli"], program="iflow", words=["-p", "<prompt>"], variables=OPENAI),
    Product("openclaw", ["openclaw"], program="openclaw", files={".openclaw/openclaw.json": CLAW},
           words=["agent", "--local", "--session-id", "first", "--message", "<prompt>"]),
    Product("aider", ["aider-chat"], python=(3, 10), program="aider", variables=dict(OPENAI, **LITELLM),
           words=["--model", "openai/<model>", "--yes-always", "--no-check-update", "--analytics-disable", "--no-git",
                  "--no-show-model-warnings", "--message", "<prompt>", "data/settings_00.txt"]),
    Product("openhands", ["openhands"], python=(3, 12), program="openhands", words=["--headless", "--override-with-envs", "-t", "<prompt>"],
           variables=dict(LITELLM, LLM_MODEL="openai/<model>", LLM_BASE_URL="<url>/v1", LLM_API_KEY="none")),
]

# Products of which `docs/reference/formats.md` reads files, and whose programs no registry of packages has.
NO_PACKAGE = ["Claude Desktop", "Copilot Chat", "Cursor's agent", "goose", "Roo Code", "SpecStory", "SWE-agent"]
