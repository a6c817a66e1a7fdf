"""Broken: where the provider refuses a prompt, only the newest messages are left, without the request."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import Policy, run  # noqa: E402


class Broken(Policy):
    def overflow(self, messages, budget, ask):
        return messages[self.cut(messages, budget) :]


run(Broken())
