"""Broken: compares the messages alone with the window, and not what is sent in front of them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import Policy, run  # noqa: E402


class Broken(Policy):
    def is_due(self, messages, budget):
        return budget.overflow or budget.used - budget.fixed > self.share * self.window(budget)


run(Broken())
