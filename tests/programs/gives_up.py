"""Broken: ends when its summaries fail again and again."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import AskFailed, Policy, run  # noqa: E402


class Broken(Policy):
    def start(self, session):
        self.failures = 0

    def summary(self, old, budget, ask):
        try:
            text = super().summary(old, budget, ask)
        except AskFailed:
            self.failures += 1
            if self.failures > 3:
                raise RuntimeError("no summary after four requests") from None
            raise
        self.failures = 0
        return text


run(Broken())
