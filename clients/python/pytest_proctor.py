"""Test a compaction function with pytest: its laws, its bill, and the facts that it keeps. In the wheel `proctor-bench`.

    from mine import compact

    def test_laws(compaction, compaction_law):
        compaction(compact).keeps(compaction_law)

    def test_bill(compaction):
        assert compaction(compact).bill() <= 1.02 * compaction("full").bill()

`compaction_law` makes one test of each law of `proctor check`. The function stays in the process of the test: Proctor
is started for it, and asks it over two pipes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import pytest

from proctor_strategy import FunctionStrategy, Strategy, serve

__all__ = ["Compaction", "Compactions", "ProctorWarning"]

VERSION = "0.1.0"
"""Of the program that this file belongs to."""

Subject = Union[str, Sequence[str], Strategy, Callable[..., Any]]
Sessions = Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


class ProctorWarning(UserWarning):
    """A law that should hold is broken."""


class ProgramMissing(Exception):
    """The program `proctor` is not there, or is of another version."""


class Compactions:
    """The fixture `compaction`: call it with what is to be tested.

    That is a function as `@strategy` takes it, an object or class of `Strategy`, a command as a list of words, or the
    name of a preset. `full` is the whole history, which nothing compacts. Keywords are those of `@strategy`, and
    `strict`: laws that should hold fail as well, instead of warning; and `max_seconds`, the time for all laws together.
    Each subject is checked once in a process.
    """

    def __init__(self, program: Callable[[], str]) -> None:
        self._program = program
        self._made: Dict[Any, Compaction] = {}

    def __call__(self, subject: Subject, *, strict: bool = False, max_seconds: int = 300, **options: Any) -> "Compaction":
        key = (_key(subject), strict, max_seconds, repr(sorted(options.items())))
        if key not in self._made:
            try:
                program = self._program()
            except ProgramMissing as error:
                pytest.fail(str(error), pytrace=False)
            self._made[key] = Compaction(program, subject, strict, max_seconds, options)
        return self._made[key]


class Compaction:
    """One subject, with what is known of it: each question is asked once."""

    def __init__(self, program: str, subject: Subject, strict: bool, max_seconds: int, options: Dict[str, Any]) -> None:
        if isinstance(subject, type) and issubclass(subject, Strategy):
            subject = subject()
        if callable(subject) and not isinstance(subject, Strategy):
            subject = FunctionStrategy(subject, **{"name": _name(subject), **options})
        elif options:
            raise TypeError(f"{', '.join(sorted(options))}: only a function takes these; say them in the class or the program")
        self.subject, self.strict, self.max_seconds = subject, strict, max_seconds
        self._program = program
        self._laws: Optional[Dict[str, Dict[str, Any]]] = None
        self._results: Dict[Tuple[str, ...], Dict[str, Any]] = {}

    def laws(self) -> Mapping[str, Dict[str, Any]]:
        """The outcome of each law, as `proctor check --results` writes it."""
        if self._laws is None:
            with tempfile.TemporaryDirectory() as folder:
                results = Path(folder) / "laws.jsonl"
                words = ["check", "--max-seconds", str(self.max_seconds), "--results", str(results)]
                self._start(words, may_end_with=(0, 5, 100))
                lines = results.read_text(encoding="utf-8").splitlines()
            outcomes = [json.loads(line) for line in lines]
            self._laws = {outcome["law"]: outcome for outcome in outcomes}
        return self._laws

    def keeps(self, law: str) -> None:
        """Fails with the smallest session that breaks this law. A law that could not be judged skips the test."""
        __tracebackhide__ = True
        if law not in self.laws():
            pytest.fail(f"there is no law `{law}`; the laws are {', '.join(self.laws())}", pytrace=False)
        outcome = self.laws()[law]
        why = {"no_chance": "no session gave it a chance to be broken",
               "not_asked": "this law is not for compactions of this kind",
               "not_tried": "the compaction did not answer: see the law `answers`",
               "declared": f"broken on purpose: {outcome.get('reason')}"}.get(outcome["state"])
        if why:
            pytest.skip(why)
        if outcome["state"] == "out_of_time":
            pytest.fail(self._late([law]), pytrace=False)
        if outcome["state"] == "broken":
            if outcome["level"] == "must" or self.strict:
                pytest.fail(_words(outcome), pytrace=False)
            warnings.warn(_words(outcome), ProctorWarning, stacklevel=2)

    def keeps_all(self) -> None:
        """Fails with every law that is broken, or that was not judged in time."""
        __tracebackhide__ = True
        broken = [law for law in self.laws().values() if law["state"] == "broken"]
        fails = [law for law in broken if law["level"] == "must" or self.strict]
        late = [name for name, law in self.laws().items() if law["state"] == "out_of_time"]
        if fails or late:
            pytest.fail("\n\n".join([*map(_words, fails), *([self._late(late)] if late else [])]), pytrace=False)
        for law in broken:
            warnings.warn(_words(law), ProctorWarning, stacklevel=2)

    def _late(self, laws: List[str]) -> str:
        return f"not judged within {self.max_seconds} s (`max_seconds`): {', '.join(laws)}"

    def bill(self, sessions: Sessions = None) -> float:
        """Dollars for all these sessions together: recordings, folders of them, or the built-in quick start."""
        return self.number("bill", sessions)

    def facts(self, sessions: Sessions = None) -> float:
        """The share of facts that are still in the prompt, unchanged, when they are asked for: 0 to 1."""
        return self.number("facts", sessions)

    def actions(self, sessions: Sessions = None) -> float:
        """The share of details of later tool calls that their prompt still held: 0 to 1."""
        return self.number("actions", sessions)

    def number(self, metric: str, sessions: Sessions = None) -> float:
        """Any metric of `proctor run -o report.json`."""
        __tracebackhide__ = True
        row = self._measured(sessions)
        measured = row.get(metric, {}).get("value")
        if measured is None:
            hint = ": `proctor sessions facts` derives them from recordings" if metric == "facts" else ""
            done = row.get("completion", {}).get("value", 1)
            if done < 1:
                hint = f": with this compaction they end early (completion {int(100 * done)} %)"
            pytest.fail(f"`{metric}` is not measured on these sessions{hint}", pytrace=False)
        return float(measured)

    def _measured(self, sessions: Sessions) -> Dict[str, Any]:
        paths = [] if sessions is None else [sessions] if isinstance(sessions, (str, os.PathLike)) else list(sessions)
        key = tuple(os.path.abspath(os.fspath(path)) for path in paths)
        if key not in self._results:
            with tempfile.TemporaryDirectory() as folder:
                report = Path(folder) / "report.json"
                self._start(["run", *key, "--reports", folder, "-o", str(report)], may_end_with=(0,))
                results = json.loads(report.read_text(encoding="utf-8"))["results"]
            named = [name for name in results if name not in ("full", "empty")]
            self._results[key] = results["full" if self.subject == "full" else named[0]]
        return self._results[key]

    def _start(self, words: List[str], may_end_with: Tuple[int, ...]) -> None:
        """Runs Proctor to its end on this subject, and fails the test where Proctor itself fails."""
        __tracebackhide__ = True
        subject = self.subject
        if isinstance(subject, Strategy):
            how = ["--strategy-stdio"] if words[0] == "check" else ["--strategy-cmd", "-"]
            pipe = subprocess.PIPE
        else:
            pipe = subprocess.DEVNULL
            if isinstance(subject, str):
                how = ["--strategy", "none" if subject == "full" else subject]
            elif words[0] == "run":
                how = ["--strategy-cmd", _shell(subject)]
            else:
                how = ["--", *subject]
        # A report is not this test's to put into the summary of a workflow.
        environment = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
        with tempfile.TemporaryFile() as errors:
            command = [self._program, *words, *how]
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, env=environment)
            try:
                if isinstance(subject, Strategy):
                    _serve(subject, process)
                status = process.wait()
            finally:
                process.kill()
                process.wait()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()
        if status not in may_end_with:
            pytest.fail(f"`proctor {words[0]}` ended with {status}: {_reasons(said)}", pytrace=False)


def _serve(subject: Strategy, process: "subprocess.Popen[bytes]") -> None:
    """Answers Proctor until it ends. In a thread: a function that never returns is Proctor's to give up on, and one
    that is `async` finds no loop running."""
    wrong: List[BaseException] = []

    def answer() -> None:
        try:
            serve(subject, process.stdout, process.stdin)  # type: ignore[arg-type]
        except BaseException as error:
            # Otherwise Proctor hung up.
            if process.poll() is None and not isinstance(error, OSError) and getattr(error, "code", None) != 0:
                wrong.append(error)
                process.kill()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    process.wait()
    thread.join(1)
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None and not thread.is_alive():
                pipe.close()
        except OSError:
            pass  # A late answer was still to be written.
    if wrong and isinstance(wrong[0], SystemExit):
        pytest.fail(f"`{subject.name}` ended the program: {wrong[0]}", pytrace=False)
    if wrong:
        raise wrong[0]


def _reasons(said: str) -> str:
    """The first failure of a session, and the errors: without the sessions that went well, or as badly as the first."""
    lines = said.splitlines()
    failed = [line for line in lines if line.startswith("failed: ")]
    error = next((at for at, line in enumerate(lines) if line.startswith("error: ")), len(lines))
    return "\n".join(failed[:1] + lines[error:]) if failed else said


def _words(outcome: Mapping[str, Any]) -> str:
    """A broken law, as a person reads it."""
    found = outcome["finding"]
    lines = "\n".join(f"    {line}" for line in found["lines"])
    return (f"`{outcome['law']}` is broken: {outcome['expected']}\n"
            f"  got      {found['got']}\n"
            f"  session  {found['scene']}, window {found['window']:,} tokens, the smallest that breaks it:\n{lines}")


def _key(subject: Subject) -> Any:
    return subject if isinstance(subject, str) else tuple(subject) if isinstance(subject, (list, tuple)) else id(subject)


def _name(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


def _shell(words: Any) -> str:
    import shlex

    return " ".join(map(shlex.quote, words))


def _find(config: pytest.Config) -> str:
    """The program: the option `proctor_program`, the one beside this Python, or that of the path."""
    own = Path(sys.executable).with_name("proctor.exe" if os.name == "nt" else "proctor")
    chosen = config.getini("proctor_program")
    program = chosen or (str(own) if own.exists() else shutil.which("proctor"))
    if not program:
        raise ProgramMissing("the program `proctor` is not installed: the wheel `proctor-bench` brings it, and "
                             "`proctor_program = PATH` in the settings of pytest names one")
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise ProgramMissing(f"`{program}` does not start: {error}") from error
    if said[-1:] != [VERSION]:
        raise ProgramMissing(f"`{program}` is {' '.join(said)}, and this plugin belongs to {VERSION}: install both of one "
                             "version (`pip install --upgrade proctor-bench`)")
    return program


def _laws(program: str) -> List[str]:
    said = subprocess.run([program, "check", "--laws"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines() if line]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("proctor_program", "the program `proctor`; by default the one that is installed", default="")


def pytest_configure(config: pytest.Config) -> None:
    found: List[str] = []

    def program() -> str:
        if not found:
            found.append(_find(config))
        return found[0]

    config.stash[_PROGRAM] = program


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compaction_law" not in metafunc.fixturenames:
        return
    try:
        laws = _laws(metafunc.config.stash[_PROGRAM]())
    except (ProgramMissing, OSError, subprocess.CalledProcessError):
        laws = ["answers"]  # One test, which says why there are no more.
    metafunc.parametrize("compaction_law", laws)


@pytest.fixture(scope="session")
def compaction(pytestconfig: pytest.Config) -> Compactions:
    """Tests a compaction function: `compaction(compact).keeps("valid_context")`."""
    return Compactions(pytestconfig.stash[_PROGRAM])


_PROGRAM: "pytest.StashKey[Callable[[], str]]" = pytest.StashKey()
