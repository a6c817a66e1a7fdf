"""A folder in place of a container, and the agent of `examples/tasks` in it, for Harbor. There is no boundary."""
import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult

TASKS = Path(__file__).resolve().parents[2] / "examples" / "tasks"


async def run(words, folder, environment, seconds=None):
    process = await asyncio.create_subprocess_exec(
        *words, cwd=folder, env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT)
    try:
        said = await asyncio.wait_for(process.stdout.read(), seconds)
        return ExecResult(stdout=said.decode("utf-8", "replace"), stderr="", return_code=await process.wait())
    finally:
        if process.returncode is None:
            process.kill()


class Folder(BaseEnvironment):
    """`/app`, `/logs`, `/tests` and `/solution` are folders below one of the trial's own."""

    @staticmethod
    def type():
        return "folder"

    def _validate_definition(self):
        pass

    def place(self, path):
        return self.trial_paths.trial_dir.resolve() / "root" / str(path).lstrip("/")

    async def start(self, force_build):
        shutil.copytree(self.environment_dir / "app", self.place("app"))
        for name in ("logs/agent", "logs/verifier", "logs/artifacts", "tests", "solution"):
            self.place(name).mkdir(parents=True)

    async def stop(self, delete):
        pass

    async def upload_file(self, source_path, target_path):
        shutil.copy2(source_path, self.place(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self.place(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy2(self.place(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.place(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        command = re.sub(r"(?<![\w.])/(?=(?:app|logs|tests|solution)\b)", "%s/" % self.place(""), command)
        environment = {"PATH": os.environ["PATH"], "APP_DIR": str(self.place("app")), "LOGS_DIR": str(self.place("logs"))}
        environment.update(env or {})
        return await run(["sh", "-c", command], self.place(cwd or "app"), environment, timeout_sec)


class Agent(BaseAgent):
    """The agent of `examples/tasks`."""

    @staticmethod
    def name():
        return "small"

    def version(self):
        return "1"

    async def setup(self, environment):
        pass

    async def run(self, instruction, environment, context):
        prompt = environment.place("instruction.md")
        prompt.write_text(instruction)
        words = [sys.executable, str(TASKS / "agent.py"), "--url", self.extra_env["ANTHROPIC_BASE_URL"]]
        words += ["--model", "scripted", "--user", "%s/%s" % (environment.environment_dir.parent.name, environment.trial_paths.trial_dir.name)]
        words += ["--work", str(environment.place("app")), "--prompt-file", str(prompt)]
        await run(words, environment.place("app"), {"PATH": os.environ["PATH"]})
