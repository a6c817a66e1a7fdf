"""Tests of the pytest plugin with functions that go wrong. They need pytest, pytest-xdist, and the program: `PROCTOR=PATH`."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ.get("PROCTOR")
FUNCTIONS = """
import asyncio, sys
import pytest

def raises(messages, budget, ask):
    raise ValueError("no such tool")

def returns_none(messages, budget, ask):
    return None

def generates(messages, budget, ask):
    yield from messages

async def awaits(messages, budget, ask):
    await asyncio.sleep(0)
    return messages

def mutates(messages, budget, ask):
    del messages[1:-1]

def other_shape(messages, budget, ask):
    return [{"text": message["content"]} for message in messages]

def exits(messages, budget, ask):
    sys.exit("no configuration")

def newest(messages, budget, ask):
    return messages[-3:]

@pytest.mark.parametrize("name", "raises returns_none generates awaits mutates other_shape exits".split())
def test_laws(compaction, name):
    compaction(globals()[name]).keeps("answers")
    compaction(globals()[name]).keeps("valid_context")

def test_bill(compaction):
    compaction(raises).bill()

def test_many(compaction):
    assert compaction(newest).number("completion", "many.json") == 1
"""
# How the test of each function ends; an empty text is a test that passes.
EXPECTED = {
    "test_laws[raises]": "ValueError: no such tool",
    "test_laws[returns_none]": "",
    "test_laws[generates]": "a strategy returns a list of messages, not generator",
    "test_laws[awaits]": "",
    "test_laws[mutates]": "`valid_context` is broken",
    "test_laws[other_shape]": "item 0 of the answer is no message",
    "test_laws[exits]": "`exits` ended the program: no configuration",
    "test_bill": "`proctor run` ended with 104: failed: code-review-s1-t100000/program/0: stage `external`: the program gave up: "
                 "ValueError: no such tool\nerror: 12 of 48 cells failed",
    "test_many": "",
}


@unittest.skipUnless(PROGRAM and importlib.util.find_spec("xdist"), "needs `PROCTOR=PATH`, pytest and pytest-xdist")
class Plugin(unittest.TestCase):
    def run_pytest(self, program, *options):
        """The tests of `FUNCTIONS`: for each what was said where it failed."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            # The modules alone: what a build leaves beside them names the plugin a second time.
            for module in ("proctor_strategy.py", "pytest_proctor.py"):
                shutil.copy(Path(__file__).resolve().parent / module, folder)
            (folder / "test_mine.py").write_text(FUNCTIONS)
            (folder / "pytest.ini").write_text(f"[pytest]\nproctor_program = {program}\n")
            messages = [{"role": role, "content": f"{number}"} for number in range(50_000) for role in ("user", "assistant")]
            (folder / "many.json").write_text(json.dumps({"messages": messages}))
            command = [sys.executable, "-m", "pytest", "-p", "pytest_proctor", "-p", "no:cacheprovider", *options,
                       "--junit-xml", "junit.xml", "-o", "junit_logging=all"]
            env = {**os.environ, "PYTHONPATH": str(folder), "PATH": str(folder)}
            subprocess.run(command, cwd=folder, env=env, capture_output=True)
            import xml.etree.ElementTree as xml

            cases = xml.parse(folder / "junit.xml").iter("testcase")
            return {case.get("name"): "".join(found.get("message") for found in case.iter("failure")) for case in cases}

    def test_functions_that_go_wrong_are_told(self):
        outcomes = self.run_pytest(os.path.abspath(PROGRAM), "-n", "8")
        self.assertEqual(sorted(outcomes), sorted(EXPECTED))
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                self.assertIn(expected, outcomes[name])
                self.assertEqual(not outcomes[name], not expected, outcomes[name])

    def test_a_missing_program_and_one_of_another_version_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            old = Path(folder) / "proctor"
            old.write_text("#!/bin/sh\necho proctor 0.0.9\n")
            old.chmod(0o755)
            for program, expected in (("", "the program `proctor` is not installed: the wheel"),
                                      (old, f"`{old}` is proctor 0.0.9, and this plugin belongs to"),
                                      (old / "there", "does not start: ")):
                outcomes = self.run_pytest(program, "-k", "raises")
                self.assertIn(expected, outcomes["test_laws[raises]"])


if __name__ == "__main__":
    unittest.main()
