"""Broken: the summary lists the tools in the order of a set."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "bugs"))

from policy import Policy, blocks, run  # noqa: E402


class Broken(Policy):
    def summary(self, old, budget, ask):
        names = {block["name"] for message in old for block in blocks(message) if block["type"] == "tool_use"}
        return super().summary(old, budget, ask) + "\nTools: " + ", ".join(names)


run(Broken())
