"""Write a compaction strategy for Proctor in Python. One file, no dependencies, Python 3.9 or later.

    from proctor_strategy import strategy

    @strategy
    def compact(messages, budget, ask):
        return messages

That is a whole program: as a script it speaks Proctor's protocol on standard input and output, imported it is the
plain function. The program starts where the decorator stands, so the function comes last in its file.

A function returns the list of messages that the model is to see. Messages that it was given stay what they are,
by identity or by equality; a message that was changed in place is noticed. `None` stands for the list that was
given, as the function left it. It may also return `Edits` or `Summary`. Where `ask` fails and the function does
not catch it, nothing is changed. What is printed goes to standard error.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import threading
import traceback
from bisect import bisect_left
from itertools import accumulate, compress, count, islice
from operator import is_not, ne
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

__all__ = ["AskFailed", "Budget", "Edits", "Reply", "Session", "Strategy", "Summary", "run", "safe_cut", "serve",
           "strategy", "text_of"]

PROTOCOL = 2
MOMENTS = ("append", "before_call", "overflow", "after_call")
KINDS = ("window", "clear", "summarise", "other")
Message = Dict[str, Any]
Breaks = Union[Iterable[str], Mapping[str, str]]


class AskFailed(Exception):
    """A model gave no text. `kind` is `too_long`, `timeout`, `rate_limited`, `server`, `failed`, `refusal`,
    `tool_use`, or `empty`."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the model gave no text: {kind}")
        self.kind = kind


class Reply(NamedTuple):
    """The answer of a model. `stop` is `end`, `max_tokens`, `tool_use` or `refusal`."""

    text: str
    stop: str


class Edits(NamedTuple):
    """Ranges that make way for messages: `Edits([(2, 9, [message])])`. Ascending and disjoint; ends are exclusive."""

    edits: Sequence[Tuple[int, int, Sequence[Message]]]
    reason: Optional[str] = None


class Summary(NamedTuple):
    """One message of the user in place of the messages from `from_` up to `to`."""

    from_: int
    to: int
    text: str
    reason: Optional[str] = None


class Session:
    """What is the same at every call. `window` and `effective` are tokens, `seed` is for random draws."""

    def __init__(self, line: Dict[str, Any]) -> None:
        window = line.get("window") or {}
        self.system: Optional[str] = line.get("system")
        self.tools: List[Dict[str, Any]] = line.get("tools") or []
        self.window: int = window.get("tokens", 0)
        self.effective: int = window.get("effective_tokens", self.window)
        self.seed: int = line.get("seed", 0)


class Budget:
    """The present: how large the prompt is, and how large it may be. All sizes are tokens.

    `used` is the prompt as it would be sent now, `fixed` the part of it that is system prompt and tools, `tokens`
    the messages that fit into the effective window. `moment` is the name of what happens, `overflow` whether the
    provider has just refused the prompt. A `reason` that is set here goes into the log.
    """

    def __init__(self, line: Dict[str, Any], session: Session, view: "_View") -> None:
        self.moment: str = line["type"]
        self.call: int = line.get("call", 0)
        self.used: int = line.get("prompt_tokens", 0)
        self.fixed: int = line.get("fixed_tokens", 0)
        self.tokens: int = line.get("budget_tokens", 0)
        self.seconds: Optional[int] = line.get("seconds")
        self.overflow: bool = self.moment == "overflow"
        self.attempt: int = line.get("attempt", 0)
        self.system, self.tools, self.seed = session.system, session.tools, session.seed
        self.window, self.effective = session.window, session.effective
        self.reason: Optional[str] = None
        self._view = view

    def size(self, what: Union[str, Message, Iterable[Message]]) -> int:
        """Tokens as counted by Proctor for messages that were given, a quarter of the characters for new ones."""
        if isinstance(what, str):
            return -(-len(what) // 4)
        if isinstance(what, dict):
            place = self._view.find(what)
            return self._view.facts[place][0] if place is not None else self.size(text_of(what))
        return sum(map(self.size, what))


class Strategy:
    """A strategy with state: override the moments that it wants, and call `run(Mine())`.

    `before_call`, `overflow` and `after_call` return what a function returns, `append` the shortened message or
    `None`. All may be `async`. Between sessions nothing is kept: `start` is the place to forget.
    """

    history = "kept"
    """`kept`: each call builds on what was returned last. `full`: each call gets the whole original history."""
    shape = "anthropic"
    """Messages as Anthropic's messages API has them, or as `openai`'s chat API does, without the system prompt."""
    name: Optional[str] = None
    kind = "other"
    """How it makes a context smaller: `window`, `clear`, `summarise` or `other`. Laws for other kinds are not asked."""
    breaks: Breaks = ()
    """Laws that it breaks on purpose: `["never_larger"]`, or with the reasons: `{"never_larger": "it adds a plan"}`."""

    def start(self, session: Session) -> Any:
        """A new session begins."""

    def append(self, message: Message, budget: Budget) -> Any:
        """A message enters the conversation. No model can be asked."""

    def before_call(self, messages: List[Message], budget: Budget, ask: Any) -> Any:
        """A call of the agent comes next."""

    def overflow(self, messages: List[Message], budget: Budget, ask: Any) -> Any:
        """The provider refused the prompt as too long; changing nothing gives up."""

    def after_call(self, messages: List[Message], budget: Budget, ask: Any) -> Any:
        """The model's response was appended."""

    def moments(self) -> List[str]:
        """The moments that the program wants: those that it overrides."""
        return [moment for moment in MOMENTS if getattr(type(self), moment) is not getattr(Strategy, moment)]


class FunctionStrategy(Strategy):
    """A function as a strategy: the same at every moment."""

    def __init__(self, function: Callable[..., Any], history: str = "kept", shape: str = "anthropic",
                 moments: Sequence[str] = ("before_call", "overflow"), name: Optional[str] = None,
                 kind: str = "other", breaks: Breaks = ()) -> None:
        if "append" in moments:
            raise ValueError("a function does not take `append`: write a class")
        self.history, self.shape, self.name = history, shape, name or function.__name__
        self.kind, self.breaks = kind, breaks
        self.before_call = self.overflow = self.after_call = function  # type: ignore[method-assign]
        self._moments = list(moments)

    def moments(self) -> List[str]:
        return self._moments


def strategy(function: Optional[Callable[..., Any]] = None, *, history: str = "kept", shape: str = "anthropic",
             moments: Sequence[str] = ("before_call", "overflow"), name: Optional[str] = None,
             kind: str = "other", breaks: Breaks = ()) -> Any:
    """Makes a program of a function: `@strategy`, or `@strategy(history="full", shape="openai")`."""

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        program = FunctionStrategy(function, history, shape, moments, name, kind, breaks)
        if function.__module__ == "__main__":
            run(program)
            raise SystemExit(0)
        return function

    return made if function is None else made(function)


def run(program: Strategy) -> None:
    """Speaks with Proctor until it hangs up. What anything else prints goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(program, source, sink)


def serve(program: Strategy, source: BinaryIO, sink: BinaryIO) -> None:
    """The same on two binary streams."""
    if program.history not in ("kept", "full") or program.shape not in ("anthropic", "openai"):
        raise ValueError("`history` is `kept` or `full`, `shape` is `anthropic` or `openai`")
    if program.kind not in KINDS or isinstance(program.breaks, str):
        raise ValueError(f"`kind` is one of {', '.join(KINDS)}, `breaks` a list of laws or a dict with their reasons")
    moments = program.moments()
    if not moments or not set(moments) <= set(MOMENTS):
        raise ValueError(f"a strategy takes one at least of {', '.join(MOMENTS)}")
    if "append" in moments and (program.shape == "openai" or program.history == "full"):
        raise ValueError("`append` needs `shape = \"anthropic\"` and `history = \"kept\"`")
    _Loop(program, moments, source, sink).run()


def text_of(what: Any) -> str:
    """The text of a message, a block or a list of blocks, as Proctor counts it."""
    if not isinstance(what, dict):
        return "\n".join(map(text_of, what)) if isinstance(what, (list, tuple)) else what or ""
    kind = what.get("type")
    if kind in ("text", "thinking"):
        return what.get(kind) or ""
    if kind == "tool_use":
        return f"{what.get('name')} {_json(what.get('input'))}"
    if kind == "image" or kind == "image_url":
        return ""
    if kind == "tool_result" or "role" in what:
        calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in what.get("tool_calls") or ()]
        texts = [text_of(what.get("content"))] if what.get("content") or not calls else []
        return "\n".join(texts + calls)
    return _json(what)


def safe_cut(messages: Sequence[Message], at: int) -> int:
    """The nearest place at `at` or before it where a cut parts no tool result from its call. A negative place counts
    from the end. Providers refuse a result without its call."""
    at = max(len(messages) + at, 0) if at < 0 else min(at, len(messages))
    missing: Set[str] = set()
    for place in range(len(messages) - 1, -1, -1):
        if place < at and not missing:
            return at
        at = min(at, place)
        calls, results = _ids(messages[place])
        missing = (missing | results) - calls
    return 0 if missing else at


def _loaded() -> Dict[str, str]:
    """The files that the program loaded, each with a hash of its content: those below its own folder by their path
    there, those of packages elsewhere as one. Python's own are left out."""
    own = os.path.dirname(os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0]))
    library = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
    files: Dict[str, str] = {}
    packages = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not path:
            continue
        path = os.path.abspath(path)
        is_installed = "site-packages" in path or "dist-packages" in path
        if path.startswith(library) and not is_installed:
            continue
        try:
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()[:16]
        except OSError:
            continue
        if path.startswith(os.path.join(own, "")) and not is_installed:
            files[os.path.relpath(path, own).replace(os.sep, "/")] = content
        else:
            packages.update(f"{name} {content}\n".encode())
    return {**files, "packages": packages.hexdigest()[:16]}


def _ids(message: Message) -> Tuple[Set[str], Set[str]]:
    """The ids of the tool calls in a message, and of the results."""
    content = message.get("content")
    blocks: List[Any] = content if isinstance(content, list) else []
    calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    calls += [call["id"] for call in message.get("tool_calls") or ()]
    results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
    results += [message["tool_call_id"]] if "tool_call_id" in message else []
    return set(calls), set(results)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _line(value: Dict[str, Any]) -> bytes:
    """A line of the protocol. Half a character, as JSON may hold it, is no UTF-8 and becomes a question mark."""
    return _json(value).encode("utf-8", "replace") + b"\n"


def _copy(value: Any) -> Any:
    """Dicts and lists anew; texts are shared, so that comparing a copy is cheap."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _key(value: Any) -> Any:
    """The same as something that a dict takes as a key."""
    if isinstance(value, dict):
        return tuple((key, _key(value[key])) for key in sorted(value))
    return tuple(map(_key, value)) if isinstance(value, list) else value


class _Loop:
    """Reads lines and answers them."""

    def __init__(self, program: Strategy, moments: List[str], source: BinaryIO, sink: BinaryIO) -> None:
        self.program, self.moments, self.source, self.sink = program, moments, source, sink
        self.session, self.view = Session({}), _View(program.shape)
        self.lock = threading.Lock()
        self.id: Optional[int] = None  # Of the line that is to be answered.
        self.events: Any = None
        self.broken: Optional[Exception] = None
        self.told = ""

    def run(self) -> None:
        later: Optional[Dict[str, Any]] = None
        while later is not None or (raw := self.source.readline()):
            try:
                asked, later = later or self.read(raw), None
                answer = self.answer(asked)
                line = None if answer is None else self.line(answer)
            except _Overtaken as overtaken:
                later = overtaken.line
                continue
            except Exception as error:  # Whatever the program does wrong: its cell fails with this reason.
                self.tell(traceback.format_exc())
                hint = ": `@strategy` starts at once, so put it last in the file" if type(error) is NameError else ""
                line = self.line({"type": "error", "message": f"{type(error).__name__}: {error}{hint}"})
            if line is not None:
                self.write(line)
        if self.events is not None:
            self.events.close()

    def tell(self, trace: str) -> None:
        """Prints a call stack, once as often as it comes."""
        if trace != self.told:
            print(trace, file=sys.stderr, end="")
        self.told = trace

    def read(self, raw: bytes) -> Dict[str, Any]:
        line: Dict[str, Any] = json.loads(raw)
        self.id = line.get("id", self.id)
        return line

    def line(self, answer: Dict[str, Any]) -> bytes:
        return _line({**answer, "id": self.id})

    def write(self, line: bytes) -> None:
        self.sink.write(line)
        self.sink.flush()

    def answer(self, line: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        kind, program = line["type"], self.program
        if kind == "hello":
            hello = {"type": "hello", "protocol": PROTOCOL, "history": program.history, "context": "changes"}
            reasons = program.breaks if isinstance(program.breaks, Mapping) else dict.fromkeys(program.breaks)
            breaks = [{"law": law, **({"reason": why} if why else {})} for law, why in reasons.items()]
            hello = {**hello, "moments": self.moments, "files": _loaded(), "kind": program.kind, "breaks": breaks}
            return {**hello, **({"name": program.name} if program.name else {})}
        if kind == "session":
            self.session, self.view, self.broken = Session(line), _View(program.shape), None
            try:
                self.finish(program.start(self.session))
            except Exception as error:  # The next line that wants an answer gets it.
                self.broken = error
            return None
        if self.broken is not None:
            raise self.broken
        if kind == "append":
            alone = _View("anthropic")
            alone.update([line["message"]])
            message = alone.shown[0]
            result = self.finish(program.append(message, Budget(line, self.session, alone)))
            result = message if result is None else result
            if result == alone.kept[0]:
                return {"type": "unchanged"}
            return {"type": "message", "message": alone.pieces([result], {0}, with_of=False)[0]}
        if kind not in MOMENTS:
            raise ValueError(f"a line of unknown type `{kind}`")
        self.view.update(line["messages"])
        budget, messages = Budget(line, self.session, self.view), list(self.view.shown)
        method = getattr(program, kind)
        ask = (_AsyncAsk if inspect.iscoroutinefunction(method) else _Ask)(self)
        try:
            result = self.finish(method(messages, budget, ask))
            answer = self.view.answer(messages if result is None else result)
        except AskFailed as error:
            self.view.mend(self.view.changed())
            answer = {"type": "unchanged", "reason": str(error)}
        return {**answer, "reason": budget.reason} if budget.reason else answer

    def finish(self, result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result
        if self.events is None:
            import asyncio

            self.events = asyncio.new_event_loop()
        return self.events.run_until_complete(result)


class _Overtaken(BaseException):
    """Proctor no longer waits for the answer, and went on with this line."""

    def __init__(self, line: Dict[str, Any]) -> None:
        super().__init__("Proctor went on")
        self.line = line


class _Ask:
    """`ask("Summarise: …")` is the text of the answer, or raises `AskFailed`.

    Instead of a text it takes messages, given ones among them. Options are `system`, `max_tokens` (2,000), `model`
    (`"fast"`, or a name that price files know), and `with_prefix`: the agent's system prompt and tools come first.
    """

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop

    def __call__(self, what: Union[str, Sequence[Message]], **options: Any) -> Any:
        return self._text(self._full(what, **options))

    def full(self, what: Union[str, Sequence[Message]], **options: Any) -> Any:
        """Text and stop, whatever they are; raises only where there was no answer."""
        return self._full(what, **options)

    @staticmethod
    def _text(reply: Reply) -> str:
        if reply.stop in ("tool_use", "refusal"):
            raise AskFailed(reply.stop)
        if not reply.text.strip():
            raise AskFailed("empty")
        return reply.text

    def _full(self, what: Union[str, Sequence[Message]], *, system: Optional[str] = None, max_tokens: int = 2000,
              model: Optional[str] = None, with_prefix: bool = False) -> Reply:
        messages = [{"role": "user", "content": what}] if isinstance(what, str) else list(what)
        if self._loop.program.shape == "openai" and system is None and messages and messages[0]["role"] == "system":
            system = text_of(messages.pop(0)["content"])
        view = self._loop.view
        pieces = view.pieces(messages, view.changed(), with_of=False)
        line: Dict[str, Any] = {"type": "ask", "messages": pieces, "max_tokens": max_tokens}
        more = {"system": system, "model": model, "with_prefix": with_prefix or None}
        line.update((key, value) for key, value in more.items() if value is not None)
        with self._loop.lock:
            self._loop.write(self._loop.line(line))
            raw = self._loop.source.readline()
            if not raw:
                raise SystemExit(0)
            answer = self._loop.read(raw)
        if answer["type"] != "answer":
            raise _Overtaken(answer)
        if answer.get("error"):
            raise AskFailed(answer["error"])
        return Reply(answer.get("text") or "", answer.get("stop") or "end")


class _AsyncAsk(_Ask):
    """The same, to be awaited. Requests are made one after the other."""

    async def __call__(self, what: Union[str, Sequence[Message]], **options: Any) -> str:
        return self._text(self._full(what, **options))

    async def full(self, what: Union[str, Sequence[Message]], **options: Any) -> Reply:
        return self._full(what, **options)


class _View:
    """The list that Proctor sent last, and what the program was shown of it.

    A message is shown as one or, in OpenAI's shape, as several. `kept` are the shown ones as they were: what differs
    was changed by the program. `facts` are the tokens of each, and the blocks that it shows; `homes` says which of
    Proctor's messages it shows.
    """

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.homes: List[int] = []
        self.shown: List[Message] = []
        self.kept: List[Message] = []
        self.facts: List[Tuple[int, List[Any]]] = []
        self.places: Dict[Any, int] = {}  # By identity, and by the ids of calls. May be stale.
        self.index: Dict[Any, Message] = {}  # The kept ones by content, but for
        self.fresh: List[Message] = []  # these.

    def size(self) -> int:
        """The number of Proctor's messages."""
        return self.homes[-1] + 1 if self.homes else 0

    def update(self, items: List[Any]) -> None:
        """Takes over the next list: messages, and ranges of the last list."""
        stays = items[0][1] if items and isinstance(items[0], list) and items[0][0] == 0 else 0
        lists: Tuple[List[Any], ...] = (self.homes, self.shown, self.kept, self.facts)
        old = [one[:] for one in lists]
        for one in lists:
            del one[bisect_left(old[0], stays):]
        used = stays
        for item in items[1:] if stays else items:
            home, first = self.size(), len(self.shown)
            if isinstance(item, dict):
                tokens = item.pop("tokens", 0)
                members = _to_openai(item) if self.shape == "openai" else [(item, item["content"])]
                self.homes += [home] * len(members)
                self.kept += [message for message, _ in members]
                self.shown += [_copy(message) for message, _ in members]
                sizes = _shares(tokens, [message for message, _ in members])
                self.facts += [(size, blocks) for size, (_, blocks) in zip(sizes, members)]
                self.fresh += self.kept[first:]
            else:
                begin, end = bisect_left(old[0], item[0]), bisect_left(old[0], item[1])
                self.homes += [old_home - item[0] + home for old_home in old[0][begin:end]]
                self.kept += old[2][begin:end]
                self.shown += old[1][begin:end] if item[0] >= used else map(_copy, old[2][begin:end])
                self.facts += old[3][begin:end]
                used = max(used, item[1])
            for at in range(first, len(self.shown)):
                self.places[id(self.shown[at])] = self.places[id(self.kept[at])] = at
                if self.shape == "openai":
                    self.places.update((name, at) for name in _call_names(self.kept[at]))

    def changed(self) -> Set[int]:
        """The places that the program changed. Texts that are the same objects make this cheap."""
        return set() if self.shown == self.kept else set(compress(count(), map(ne, self.shown, self.kept)))

    def mend(self, changed: Iterable[int]) -> None:
        """What was changed is shown as it was from now on: Proctor sends the changed version, if it stays."""
        for at in changed:
            self.shown[at] = _copy(self.kept[at])
            self.places[id(self.shown[at])] = at

    def own(self, message: Message) -> Optional[int]:
        """The place of this very object, changed or not."""
        at = self.places.get(id(message), len(self.shown))
        return at if at < len(self.shown) and self.shown[at] is message else None

    def find(self, message: Message, expected: int = 0) -> Optional[int]:
        """The place of a message that says this; the expected one if it does."""
        at = self.own(message)
        if at is None and expected < len(self.kept) and self.kept[expected] == message:
            at = expected
        if at is None:
            self.index.update((_key(kept), kept) for kept in self.fresh)
            self.fresh.clear()
            at = self.places.get(id(self.index.get(_key(message))), len(self.kept))
        return at if at < len(self.kept) and self.kept[at] == message else None

    def answer(self, result: Any) -> Dict[str, Any]:
        """The line that says this result."""
        reason = {"reason": result.reason} if getattr(result, "reason", None) else {}
        changed = self.changed()
        if isinstance(result, Summary):
            self.mend(changed)
            begin, end = self.border(result.from_), self.border(result.to)
            return {"type": "summary", "from": begin, "to": end, "text": result.text, **reason}
        if isinstance(result, Edits):
            messages: List[Message] = []
            at = 0
            for begin, end, new in result.edits:
                if not at <= begin <= end <= len(self.shown):
                    raise ValueError(f"the edit from {begin} to {end} is out of order, or behind the last message")
                messages += self.shown[at:begin] + list(new)
                at = end
            result = messages + self.shown[at:]
        if not isinstance(result, (list, tuple)):
            raise TypeError(f"a strategy returns a list of messages, not {type(result).__name__}")
        whole = [[0, self.size()]]
        pieces = self.pieces(result, changed) if changed or list(result) != self.shown else whole
        self.mend(changed)
        return {"type": "unchanged", **reason} if pieces == whole else {
            "type": "messages", "messages": pieces, **reason}

    def border(self, at: int) -> int:
        """A place among the shown messages as one among Proctor's."""
        if not 0 <= at <= len(self.shown) or self.whole(at) != at:
            raise ValueError(f"the messages cannot be parted at {at}")
        return self.homes[at] if at < len(self.shown) else self.size()

    def pieces(self, messages: Sequence[Message], changed: Set[int], with_of: bool = True) -> List[Any]:
        """Ranges of what was sent, and messages that are new; changed ones say what they are a version of."""
        at = min([len(messages), len(self.shown), *changed])  # What stays in front costs little.
        at = expected = self.whole(next(compress(count(), map(is_not, messages[:at], self.shown)), at))
        pieces: List[Any] = [[0, self.homes[at - 1] + 1]] if at else []
        taken = {*changed, *range(at)}  # A message stands in one range: the second time it is written out.
        run: Tuple[Optional[int], bool] = (None, False)  # Of the last piece: its home, and whether it holds results.
        while at < len(messages):
            message = messages[at]
            if not isinstance(message, dict) or "role" not in message:
                raise TypeError(f"item {at} of the answer is no message")
            origin = self.own(message)
            intact = origin not in changed if origin is not None else None
            if origin is None:
                origin = self.find(message, expected)
                intact = origin is not None
            if intact and origin is not None:
                end = self.stretch(messages, at, origin, taken)
                if end > origin and self.homes[origin - 1:origin] != self.homes[origin:origin + 1]:
                    begin, stop = self.homes[origin], self.homes[end - 1] + 1
                    if pieces and isinstance(pieces[-1], list) and pieces[-1][1] == begin:
                        pieces[-1][1] = stop
                    else:
                        pieces.append([begin, stop])
                    taken.update(range(origin, end))
                    at, expected, run = at + end - origin, end, (None, False)
                    continue
            home = self.homes[origin] if origin is not None else None
            at, expected = at + 1, expected if origin is None else origin + 1
            content, is_result = message.get("content", ""), message["role"] == "tool"
            if self.shape == "openai":
                origin = self.version(message) if origin is None else origin
                home = self.homes[origin] if origin is not None else None
                old = self.facts[origin][1] if origin is not None else []
                content = list(old) if intact else _from_openai(message, old)
                parted = message["role"] == "assistant" or not pieces or isinstance(pieces[-1], list)
                if not parted and run[0] == home and (home is not None or run[1] and is_result):
                    pieces[-1]["content"] += content
                    continue
            run = (home, is_result)
            piece = {"role": "assistant" if message["role"] == "assistant" else "user", "content": content}
            pieces.append({**piece, "of": home} if with_of and home is not None else piece)
        return pieces

    def stretch(self, messages: Sequence[Message], at: int, begin: int, taken: Set[int]) -> int:
        """How far the shown messages from `begin` on are those of the answer from `at` on, in whole messages."""
        end, shown, kept = begin, self.shown, self.kept
        for message in islice(messages, at, at + len(shown) - begin):
            if end in taken or message is not shown[end] and message != kept[end]:
                break
            end += 1
        return max(self.whole(end), begin)

    def whole(self, end: int) -> int:
        """The nearest place at `end` or before it where one of Proctor's messages begins."""
        while 0 < end < len(self.shown) and self.homes[end - 1] == self.homes[end]:
            end -= 1
        return end

    def version(self, message: Message) -> Optional[int]:
        """The place of a message with the same tool calls or result."""
        for name in _call_names(message):
            at = self.places.get(name, len(self.kept))
            if at < len(self.kept) and name in _call_names(self.kept[at]):
                return at
        return None


def _shares(tokens: int, messages: List[Message]) -> List[int]:
    """The tokens of a message, shared among those that show it by their characters."""
    if len(messages) == 1:
        return [tokens]
    ends = list(accumulate(len(text_of(message)) for message in messages))
    shares = [tokens * end // max(ends[-1], 1) for end in ends]
    return [end - begin for begin, end in zip([0] + shares, shares)]


def _call_names(message: Message) -> List[str]:
    """The names under which versions of a tool call or result know each other."""
    names = ["result " + str(message["tool_call_id"])] if "tool_call_id" in message else []
    return names + ["call " + str(call.get("id")) for call in message.get("tool_calls") or ()]


def _to_openai(message: Message) -> List[Tuple[Message, List[Any]]]:
    """The messages of OpenAI's chat API that say the same, each with its blocks."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if message["role"] == "assistant":
        said = [block for block in blocks if block["type"] not in ("tool_use", "thinking", "redacted_thinking")]
        calls = [{"id": block["id"], "type": "function",
                  "function": {"name": block["name"], "arguments": _arguments(block)}}
                 for block in blocks if block["type"] == "tool_use"]
        shown = {"role": "assistant", "content": _parts(said) if said or not calls else None}
        return [({**shown, "tool_calls": calls} if calls else shown, blocks)]
    results = [block for block in blocks if block["type"] == "tool_result"]
    said = [block for block in blocks if block["type"] != "tool_result"]
    all_shown = [({"role": "tool", "tool_call_id": block["tool_use_id"], "content": _parts(block.get("content"))},
                  [block]) for block in results]
    return all_shown + ([({"role": "user", "content": _parts(said)}, said)] if said or not results else [])


def _arguments(block: Any) -> str:
    """The arguments of a call, which are always an object in OpenAI's shape: free text is `{"input": …}`."""
    return _json(block["input"] if isinstance(block["input"], dict) else {"input": block["input"]})


def _parts(content: Any) -> Any:
    """Content of blocks as OpenAI's: a text where it is one."""
    if not isinstance(content, list):
        return content or ""
    if len(content) < 2 and all(block["type"] == "text" for block in content):
        return content[0]["text"] if content else ""
    return [_part(block) for block in content]


def _part(block: Any) -> Any:
    source = block.get("source") or {}
    if block["type"] == "image" and source.get("type") in ("base64", "url"):
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": block["text"] if block["type"] == "text" else _json(block)}


def _from_openai(message: Message, old: List[Any]) -> List[Any]:
    """The blocks of a message of OpenAI's; `old` are those of the version before, for what OpenAI's does not say."""
    content = message.get("content") or ""
    said = [_block(part) for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)]
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"],
                  "content": content if isinstance(content, str) else said}
        failed = any(block.get("is_error") for block in old if block.get("tool_use_id") == message["tool_call_id"])
        return [{**result, "is_error": True} if failed else result]
    thinking = [block for block in old if block["type"] in ("thinking", "redacted_thinking")]
    inputs = {(block["id"], _arguments(block)): block["input"] for block in old if block["type"] == "tool_use"}
    calls = [{"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
              "input": inputs[key] if key in inputs else json.loads(key[1] or "{}")}
             for call in message.get("tool_calls") or () for key in [(call["id"], call["function"]["arguments"])]]
    said = [] if content == "" and calls else said
    return thinking + said + calls if message["role"] == "assistant" else said


def _block(part: Any) -> Any:
    if part["type"] != "image_url":
        return part
    url = part["image_url"]["url"]
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, _, data = url[len("data:"):].partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
