"""Tests of the client: a small Proctor speaks with it over pipes. Run with `python3 -m unittest`."""

import contextlib
import copy
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest

import proctor_strategy as client
from proctor_strategy import AskFailed, Edits, FunctionStrategy, Strategy, Summary, safe_cut, serve, text_of


def user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def asks(*ids, text="", thinking=""):
    blocks = [{"type": "thinking", "thinking": thinking, "signature": "s"}] if thinking else []
    blocks += [{"type": "text", "text": text}] if text else []
    calls = [{"type": "tool_use", "id": one, "name": "Read", "input": {"path": one}} for one in ids]
    return {"role": "assistant", "content": blocks + calls}


def gives(*ids, failed=(), text=""):
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": f"result {one}"} for one in ids]
    for block in blocks:
        block.update({"is_error": True} if block["tool_use_id"] in failed else {})
    return {"role": "user", "content": blocks + ([{"type": "text", "text": text}] if text else [])}


class Proctor:
    """Plays Proctor's side. It keeps the context, and sends it as changes of the last list."""

    def __init__(self, program, answers=()):
        if callable(program) and not isinstance(program, Strategy):
            program = FunctionStrategy(program)
        reader, self.to = os.pipe()
        self.source, sink = os.pipe()
        self.program, self.answers, self.asked, self.id = program, list(answers), [], -1
        streams = os.fdopen(reader, "rb"), os.fdopen(sink, "wb")
        self.thread = threading.Thread(target=self.serve, args=streams, daemon=True)
        self.thread.start()
        self.to, self.source = os.fdopen(self.to, "wb"), os.fdopen(self.source, "rb")
        self.hello = self.say({"type": "hello", "protocol": 2, "proctor": "test"})
        self.begin()

    def serve(self, source, sink):
        with source, sink:
            serve(self.program, source, sink)

    def close(self):
        self.to.close()
        self.thread.join(5)
        self.source.close()

    def begin(self):
        self.context, self.items, self.call = [], [], 0
        window = {"tokens": 1000, "effective_tokens": 900}
        self.tell({"type": "session", "system": "Be good.", "tools": [], "window": window, "seed": 17})

    def tell(self, line):
        self.to.write(json.dumps(line).encode() + b"\n")
        self.to.flush()

    def say(self, line):
        """Numbers the line, and takes the number off its answer, which has to be the same."""
        self.id += 1
        self.tell({"id": self.id, **line})
        answer = json.loads(self.source.readline().decode("utf-8"))
        assert answer.pop("id") == self.id, answer
        if answer["type"] != "ask":
            return answer
        self.asked.append(answer)
        return self.say({"type": "answer", **self.answers.pop(0)})

    def put(self, items):
        """Messages for a list of ranges and messages."""
        context = []
        for item in items:
            context += self.context[item[0]:item[1]] if isinstance(item, list) else [item]
        return context

    def turn(self, *new, kind="before_call", **more):
        """The answer at the next call, after these messages came."""
        self.items += [{**message, "tokens": 7} for message in copy.deepcopy(new)]
        self.context = self.put(self.items)
        sizes = {"prompt_tokens": 500, "fixed_tokens": 50, "budget_tokens": 850}
        answer = self.say({"type": kind, "call": self.call, "messages": self.items, **sizes, **more})
        self.call += 1
        self.items = [[0, len(self.context)]] if self.context else []
        if answer["type"] == "messages":
            self.items = [
                item if isinstance(item, list) else {"role": item["role"], "content": item["content"], "tokens": 9}
                for item in answer["messages"]
            ]
        elif answer["type"] == "summary":
            end = len(self.context)
            ranges = [[0, answer["from"]], {**user(answer["text"]), "tokens": 9}, [answer["to"], end]]
            self.items = [item for item in ranges if isinstance(item, dict) or item[0] < item[1]]
        return answer


class Case(unittest.TestCase):
    def setUp(self):
        quiet = contextlib.redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def proctor(self, program, answers=(), **options):
        proctor = Proctor(FunctionStrategy(program, **options) if options else program, answers)
        self.addCleanup(proctor.close)
        return proctor


class Answers(Case):
    START = (user("go"), asks("a"), gives("a"), asks("b"), gives("b"))

    def answer(self, function, **options):
        return self.proctor(function, **options).turn(*self.START)

    def test_what_stays_is_a_range(self):
        five = [[0, 5]]
        for function, expected in [
            (lambda m, b, a: m, None),
            (lambda m, b, a: None, None),
            (lambda m, b, a: list(m), None),
            (lambda m, b, a: copy.deepcopy(m), None),
            (lambda m, b, a: [dict(reversed(list(one.items()))) for one in m], None),
            (lambda m, b, a: m[:1] + m[3:], [[0, 1], [3, 5]]),
            (lambda m, b, a: copy.deepcopy(m[:1] + m[3:]), [[0, 1], [3, 5]]),
            (lambda m, b, a: m + [user("more")], five + [user("more")]),
            (lambda m, b, a: [user("new")] + copy.deepcopy(m[2:]), [user("new"), [2, 5]]),
            (lambda m, b, a: m + m[:1], five + [{**user("go"), "of": 0}]),
            (lambda m, b, a: [{"role": "user", "content": "x", "name": "y"}], [{"role": "user", "content": "x"}]),
            (lambda m, b, a: tuple(m[:1]), [[0, 1]]),
            (lambda m, b, a: [], []),
            (lambda m, b, a: m.pop() and None, [[0, 4]]),
        ]:
            answer = self.answer(function)
            wanted = {"type": "unchanged"} if expected is None else {"type": "messages", "messages": expected}
            self.assertEqual(answer, wanted)

    def test_a_change_in_place_is_noticed(self):
        def clear(messages, budget, ask):
            messages[2]["content"][0]["content"] = "gone"
            return messages if budget.call else None

        changed = {**gives("a"), "of": 2}
        changed["content"][0]["content"] = "gone"
        proctor = self.proctor(clear)
        self.assertEqual(proctor.turn(*self.START)["messages"], [[0, 2], changed, [3, 5]])
        # The changed version came back, and is what it is.
        self.assertEqual(proctor.turn(asks("c")), {"type": "unchanged"})

    def test_a_change_that_is_not_returned_does_not_stay(self):
        seen = []

        def change(messages, budget, ask):
            seen.append(copy.deepcopy(messages))
            messages[0]["content"][0]["text"] = "changed"
            messages[1]["content"].clear()
            return messages[2:] if budget.call == 0 else Summary(0, 1, "short")

        proctor = self.proctor(FunctionStrategy(change, history="full"))
        self.assertEqual(proctor.turn(*self.START)["messages"], [[2, 5]])
        proctor.items = [[0, 5]]
        proctor.turn()
        proctor.items = [[0, 5]]
        proctor.turn()
        self.assertEqual(seen, [list(self.START)] * 3)

    def test_edits_and_summaries(self):
        new = user("new")
        edits = Edits([(0, 1, [new]), (2, 4, []), (5, 5, [new])], reason="because")
        expected = {"type": "messages", "messages": [new, [1, 2], [4, 5], new], "reason": "because"}
        self.assertEqual(self.answer(lambda m, b, a: edits), expected)
        expected = {"type": "summary", "from": 1, "to": 5, "text": "all"}
        self.assertEqual(self.answer(lambda m, b, a: Summary(1, 5, "all")), expected)
        for wrong in (Edits([(2, 3, []), (1, 2, [])]), Edits([(0, 6, [])]), Summary(0, 6, "x")):
            self.assertEqual(self.answer(lambda m, b, a: wrong)["type"], "error")

    def test_what_goes_wrong_is_said(self):
        for function, part in [
            (lambda m, b, a: 1 // 0, "ZeroDivisionError"),
            (lambda m, b, a: helper_below(m), "put it last"),
            (lambda m, b, a: "text", "list of messages"),
            (lambda m, b, a: [1], "no message"),
            (lambda m, b, a: [{"role": "user", "content": {1}}], "set"),
            (lambda m, b, a: [{"role": "user", "content": [{"type": "x", "n": float("nan")}]}], "JSON"),
        ]:
            answer = self.answer(function)
            self.assertEqual(answer["type"], "error")
            self.assertIn(part, answer["message"])

    def test_half_a_character_is_written_as_utf8(self):
        answer = self.answer(lambda m, b, a: m + [user("half \ud83d, whole \U0001F600")])
        self.assertEqual(answer["messages"][1], user("half ?, whole \U0001F600"))

    def test_ranges_of_the_last_list_are_put_together(self):
        seen = []
        proctor = self.proctor(lambda m, b, a: seen.append(copy.deepcopy(m)))
        proctor.turn(*self.START)
        for items in ([[3, 5], user("x"), [0, 2]], [[0, 1], [0, 1], [2, 5]], [[0, 2], user("y"), [2, 5]], []):
            proctor.items = [{**item, "tokens": 1} if isinstance(item, dict) else item for item in items]
            expected = [{key: one[key] for key in ("role", "content")} for one in proctor.put(proctor.items)]
            proctor.turn()
            self.assertEqual(seen[-1], expected)

    def test_a_message_that_is_there_twice_is_two(self):
        def change(messages, budget, ask):
            if budget.call == 1:
                messages[1]["content"][0]["text"] = "changed"

        proctor = self.proctor(change)
        proctor.turn(user("go"))
        proctor.items = [[0, 1], [0, 1]]
        self.assertEqual(proctor.turn()["messages"], [[0, 1], {**user("changed"), "of": 1}])

    def test_a_session_forgets(self):
        proctor = self.proctor(lambda m, b, a: m[-1:])
        self.assertEqual(proctor.turn(user("a"), user("b"))["messages"], [[1, 2]])
        proctor.begin()
        self.assertEqual(proctor.turn(user("c")), {"type": "unchanged"})


class Presents(Case):
    def test_the_budget_says_what_the_lines_say(self):
        seen = []

        def look(messages, budget, ask):
            messages[1]["content"] = "x" * 9
            sizes = [budget.size(what) for what in (messages, messages[0], copy.deepcopy(messages[0]), messages[1])]
            seen.append({**vars(budget), "sizes": sizes, "_view": None})
            budget.reason = "why"

        proctor = self.proctor(look)
        answer = proctor.turn(user("go"), asks("a"), seconds=5)
        self.assertEqual(answer["reason"], "why")
        proctor.turn(kind="overflow", attempt=2)
        expected = {
            "moment": "before_call", "call": 0, "used": 500, "fixed": 50, "tokens": 850, "seconds": 5,
            "overflow": False, "attempt": 0, "system": "Be good.", "tools": [], "seed": 17, "window": 1000,
            "effective": 900, "reason": None, "_view": None, "sizes": [10, 7, 7, 3],
        }
        self.assertEqual(seen[0], expected)
        later = {"moment": "overflow", "call": 1, "seconds": None, "overflow": True, "attempt": 2}
        self.assertEqual(seen[1], {**expected, **later, "sizes": [16, 7, 7, 9]})

    def test_texts_are_those_that_are_counted(self):
        self.assertEqual(text_of(asks("a", text="so", thinking="hm")), 'hm\nso\nRead {"path":"a"}')
        self.assertEqual(text_of(gives("a", "b", text="c")), "result a\nresult b\nc")
        parts = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}, {"type": "text", "text": "b"}]
        self.assertEqual(text_of({"type": "tool_result", "tool_use_id": "x", "content": parts}), "a\n\nb")
        self.assertEqual(text_of({"role": "user", "content": "x"}), "x")

    def test_a_cut_parts_no_pair(self):
        for messages in (
            [user("go"), asks("a", "b"), gives("a"), gives("b"), asks("c"), gives("c"), asks(text="done")],
            [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]},
                {"role": "tool", "tool_call_id": "a", "content": ""},
                {"role": "tool", "tool_call_id": "b", "content": ""},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
                {"role": "tool", "tool_call_id": "c", "content": ""},
                {"role": "assistant", "content": "done"},
            ],
        ):
            self.assertEqual([safe_cut(messages, at) for at in range(8)], [0, 1, 1, 1, 4, 4, 6, 7])
            self.assertEqual([safe_cut(messages, at) for at in (-1, -2, -4, -99)], [6, 4, 1, 0])
        self.assertEqual(safe_cut([gives("x")], 1), 1)


class Asks(Case):
    def test_a_request_holds_ranges_and_what_is_set(self):
        def summed(messages, budget, ask):
            text = ask(messages[:2] + [user("Sum it up.")], system="You sum up.", max_tokens=9, model="fast")
            reply = ask.full("More?", with_prefix=True)
            return [user(f"{text} {reply.text} {reply.stop}")]

        proctor = self.proctor(summed, [{"text": "one", "stop": "end"}, {"text": "", "stop": "refusal"}])
        answer = proctor.turn(user("go"), asks("a"), gives("a"))
        self.assertEqual(answer["messages"], [user("one  refusal")])
        request = {"type": "ask", "messages": [[0, 2], user("Sum it up.")], "max_tokens": 9}
        self.assertEqual(proctor.asked[0], {**request, "system": "You sum up.", "model": "fast"})
        more = {"messages": [{"role": "user", "content": "More?"}], "max_tokens": 2000, "with_prefix": True}
        self.assertEqual(proctor.asked[1], {"type": "ask", **more})

    def test_a_failure_destroys_nothing(self):
        failures = [
            ({"error": "timeout"}, "timeout"), ({"text": "x", "stop": "refusal"}, "refusal"),
            ({"text": "x", "stop": "tool_use"}, "tool_use"), ({"text": " ", "stop": "end"}, "empty"),
        ]

        def caught(messages, budget, ask):
            try:
                ask("Sum it up.")
            except AskFailed as error:
                return [user(error.kind)]

        def uncaught(messages, budget, ask):
            messages[0]["content"] = "gone"
            return [user(ask("Sum it up."))]

        for answer, kind in failures:
            self.assertEqual(self.proctor(caught, [answer]).turn(user("go"))["messages"], [user(kind)])
            proctor = self.proctor(uncaught, [answer, {"text": "fine", "stop": "max_tokens"}])
            self.assertEqual(proctor.turn(user("go"))["type"], "unchanged")
            self.assertEqual(proctor.turn()["messages"], [user("fine")])

    def test_an_async_function_awaits(self):
        async def summed(messages, budget, ask):
            import asyncio

            first, second = await asyncio.gather(ask("one"), ask.full("two"))
            return [user(first + second.text)]

        proctor = self.proctor(summed, [{"text": "1", "stop": "end"}, {"text": "2", "stop": "end"}] * 2)
        self.assertEqual(proctor.turn(user("go"))["messages"], [user("12")])
        # What it writes is in the context already.
        self.assertEqual(proctor.turn(user("go"))["messages"], [[0, 1]])

    def test_threads_ask_one_after_the_other(self):
        def many(messages, budget, ask):
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(4) as pool:
                return [user("".join(sorted(pool.map(ask, "abcd"))))]

        answers = [{"text": str(at), "stop": "end"} for at in range(4)]
        self.assertEqual(self.proctor(many, answers).turn(user("go"))["messages"], [user("0123")])


class OpenAi(Case):
    START = (
        user("go"), asks("a", "b", "c", text="I look.", thinking="hm"), gives("a", "b", "c", failed="b", text="note"),
        asks("d"), gives("d"), gives("e"),
    )

    def answer(self, function):
        return self.proctor(function, shape="openai").turn(*self.START)

    def test_messages_look_like_openais(self):
        seen = []
        self.assertEqual(self.answer(lambda m, b, a: seen.extend(copy.deepcopy(m))), {"type": "unchanged"})
        call = {"id": "d", "type": "function", "function": {"name": "Read", "arguments": '{"path":"d"}'}}
        roles = "user assistant tool tool tool user assistant tool tool"
        self.assertEqual([one["role"] for one in seen], roles.split())
        self.assertEqual(seen[0], {"role": "user", "content": "go"})
        self.assertEqual(seen[1]["content"], "I look.")
        self.assertEqual([one["id"] for one in seen[1]["tool_calls"]], ["a", "b", "c"])
        self.assertEqual(seen[3], {"role": "tool", "tool_call_id": "b", "content": "result b"})
        self.assertEqual(seen[5:7], [{"role": "user", "content": "note"},
                                     {"role": "assistant", "content": None, "tool_calls": [call]}])

    def test_the_way_back(self):
        def without_b(messages):
            return messages[:3] + messages[4:]

        def in_place(messages):
            messages[3]["content"] = "short"
            return messages

        def anew(messages):
            return messages[:3] + [{**messages[3], "content": "short"}] + messages[4:]

        def all_anew(messages):
            return [{**one, "content": "short"} if one["role"] == "tool" else one for one in messages]

        def calls(messages):
            messages[1]["tool_calls"][0]["function"]["arguments"] = "{}"
            return messages

        short = gives("a", "b", "c", failed="b", text="note")
        short["content"][1]["content"] = "short"
        shorts = [gives("a", "b", "c", failed="b", text="note"), gives("d"), gives("e")]
        for message in shorts:
            for block in message["content"]:
                block.update({"content": "short"} if block["type"] == "tool_result" else {})
        called = asks("a", "b", "c", text="I look.", thinking="hm")
        called["content"][2]["input"] = {}
        note = {"role": "user", "content": [{"type": "text", "text": "note"}]}
        new = {"role": "user", "content": "new"}
        new_calls = [{"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": ""}}]},
                     {"role": "tool", "tool_call_id": "x", "content": "1"},
                     {"role": "tool", "tool_call_id": "y", "content": "2"}]
        called_new = {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {}}]}
        given_new = {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": one, "content": text} for one, text in ("x1", "y2")]}
        for change, expected in [
            (copy.deepcopy, None),
            (lambda m: m[:1] + m[6:], [[0, 1], [3, 6]]),
            (lambda m: copy.deepcopy(m[:1] + m[6:]), [[0, 1], [3, 6]]),
            (without_b, [[0, 2], {**gives("a", "c", text="note"), "of": 2}, [3, 6]]),
            (in_place, [[0, 2], {**short, "of": 2}, [3, 6]]),
            (anew, [[0, 2], {**short, "of": 2}, [3, 6]]),
            (all_anew, [[0, 2], {**shorts[0], "of": 2}, [3, 4], {**shorts[1], "of": 4}, {**shorts[2], "of": 5}]),
            (calls, [[0, 1], {**called, "of": 1}, [2, 6]]),
            (lambda m: m[:1] + m[5:], [[0, 1], {**note, "of": 2}, [3, 6]]),
            (lambda m: [new] + m[6:], [user("new"), [3, 6]]),
            (lambda m: [{"role": "system", "content": "new"}], [user("new")]),
            (lambda m: [new] + new_calls, [user("new"), called_new, given_new]),
            (lambda m: Edits([(2, 6, [new])]), [[0, 2], user("new"), [3, 6]]),
        ]:
            answer = self.answer(lambda m, b, a: change(m))
            wanted = {"type": "unchanged"} if expected is None else {"type": "messages", "messages": expected}
            self.assertEqual(answer, wanted)

    def test_borders_and_sizes(self):
        sizes = []
        answer = self.answer(lambda m, b, a: sizes.extend(map(b.size, m)) or Summary(1, 6, "s"))
        self.assertEqual(answer, {"type": "summary", "from": 1, "to": 3, "text": "s"})
        self.assertEqual((sizes[0], sizes[1], sum(sizes[2:6])), (7, 7, 7))
        self.assertEqual(self.answer(lambda m, b, a: Summary(1, 4, "s"))["type"], "error")

    def test_a_system_message_of_a_request_is_its_system_prompt(self):
        def summed(messages, budget, ask):
            ask([{"role": "system", "content": "You sum up."}] + messages[:1] + [{"role": "user", "content": "Now."}])

        proctor = self.proctor(FunctionStrategy(summed, shape="openai"), [{"text": "x", "stop": "end"}])
        proctor.turn(*self.START)
        self.assertEqual(proctor.asked[0]["system"], "You sum up.")
        self.assertEqual(proctor.asked[0]["messages"], [[0, 1], user("Now.")])

    def test_images_survive(self):
        for source in (
            {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            {"type": "url", "url": "https://example.com/a"},
        ):
            picture = user("see")
            picture["content"].append({"type": "image", "source": source})
            back = client._from_openai(client._to_openai(picture)[0][0], [])
            self.assertEqual(back, picture["content"])

    def test_free_text_as_arguments_survives(self):
        patch = {"type": "tool_use", "id": "p", "name": "apply_patch", "input": "*** Begin Patch"}
        call = {"role": "assistant", "content": [{"type": "text", "text": "A long word."}, patch]}

        def shorten(messages, budget, ask):
            shown = messages[0]["tool_calls"][0]["function"]["arguments"]
            self.assertEqual(json.loads(shown), {"input": "*** Begin Patch"})
            messages[0]["content"] = "Word."
        answer = self.proctor(shorten, shape="openai").turn(call)
        self.assertEqual(answer["messages"][0]["content"], [{"type": "text", "text": "Word."}, patch])

    def test_edits_over_several_calls(self):
        def clear(messages, budget, ask):
            for message in [one for one in messages if one["role"] == "tool"][:-1]:
                message["content"] = "gone"

        proctor = self.proctor(clear, shape="openai")
        for at in range(6):
            proctor.turn(*([user("go")] if at == 0 else []), asks(f"{at}x", f"{at}y"), gives(f"{at}x", f"{at}y"))
        blocks = [block for one in proctor.put(proctor.items) for block in one["content"]]
        texts = [block["content"] for block in blocks if "tool_use_id" in block]
        self.assertEqual(texts, ["gone"] * 11 + ["result 5y"])


class Fuzz(Case):
    """Whatever a program does to its list, Proctor gets the list that it returned."""

    def test_what_is_returned_is_what_arrives(self):
        for seed in range(60):
            draw = random.Random(seed)
            shape, history = draw.choice(["anthropic", "openai"]), draw.choice(["kept", "full"])
            returned = []

            def change(messages, budget, ask):
                made = list(messages) if draw.random() < 0.7 else copy.deepcopy(messages)
                for _ in range(draw.randrange(4)):
                    at = draw.randrange(len(made) + 1)
                    kind = draw.randrange(6)
                    if kind == 0:
                        del made[at:at + draw.randrange(4)]
                    elif kind == 1:
                        made.insert(at, {"role": "user", "content": draw.choice(["new", "go"])})
                    elif at < len(made) and kind == 2:
                        made[at] = dict(made[at])
                    elif at < len(made) and kind == 3:
                        made[at]["content"] = f"changed {draw.randrange(9)}"
                    elif at < len(made) and kind == 4 and draw.random() < 0.2:
                        made.append(made[at])
                    elif at < len(made):
                        messages[draw.randrange(len(messages))]["content"] = "not returned, perhaps"
                returned[:] = copy.deepcopy(made)
                return made

            proctor = self.proctor(change, shape=shape, history=history)
            full = []
            for call in range(12):
                new = [user("go")] if call == 0 else []
                ids = [f"{call}-{at}" for at in range(draw.randrange(1, 4))]
                new += [asks(*ids, text="so"), gives(*ids, text=draw.choice(["", "note"]))]
                full += new
                if history == "full":
                    proctor.context, proctor.items = full[:-len(new)], [[0, len(full) - len(new)]] if call else []
                answer = proctor.turn(*new)
                self.assertIn(answer["type"], ("unchanged", "messages"), answer)
                items = answer.get("messages", [[0, len(proctor.context)]])
                self.assertEqual(self.plain(proctor.put(items), shape), self.plain(returned, shape), (seed, call))

    def plain(self, messages, shape):
        """The texts and calls in order: OpenAI's shape knows no borders between results."""
        said = []
        for message in messages:
            content = message["content"]
            if shape == "openai" and ("tool_calls" in message or message["role"] == "tool"):
                said += client._from_openai(message, [])
            else:
                said += [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = []
        for block in said:
            texts += [(block["type"], block.get("id"), block.get("tool_use_id"), text_of(block))]
        return texts


class Classes(Case):
    def test_a_class_takes_the_moments_that_it_has(self):
        class Mine(Strategy):
            name, kind = "mine", "clear"
            breaks = {"never_larger": "why", "deterministic": None}

            def start(self, session):
                self.seen = [session.window, session.seed]

            async def before_call(self, messages, budget, ask):
                self.seen.append(len(messages))

            def append(self, message, budget):
                size = budget.size(message)
                if size > 5:
                    return user("short")
                message["content"][0]["text"] = message["content"][0]["text"].upper()
                return message if size > 3 else None

            def after_call(self, messages, budget, ask):
                return messages[1:]

        program = Mine()
        proctor = self.proctor(program)
        moments = ["append", "before_call", "after_call"]
        expected = {"type": "hello", "protocol": 2, "name": "mine", "history": "kept", "context": "changes",
                    "kind": "clear", "breaks": [{"law": "never_larger", "reason": "why"}, {"law": "deterministic"}]}
        self.assertEqual({**proctor.hello, "files": {}}, {**expected, "moments": moments, "files": {}})
        for tokens, text in ((9, "short"), (4, "GO"), (1, "GO")):
            answer = proctor.say({"type": "append", "call": 0, "message": {**user("go"), "tokens": tokens}})
            self.assertEqual(answer, {"type": "message", "message": user(text)})
        proctor.turn(user("a"), user("b"))
        self.assertEqual(proctor.turn(user("c"), kind="after_call")["messages"], [[1, 3]])
        self.assertEqual(program.seen, [1000, 17, 2])
        proctor.begin()
        proctor.turn()
        self.assertEqual(program.seen, [1000, 17, 0])

    def test_a_start_that_fails_is_said_where_an_answer_is_wanted(self):
        class Mine(Strategy):
            async def start(self, session):
                if session.seed == 17:
                    raise KeyError("seed")

            def before_call(self, messages, budget, ask):
                return None

        proctor = self.proctor(Mine())
        self.assertEqual(proctor.turn(user("go"))["type"], "error")
        window = {"tokens": 1, "effective_tokens": 1}
        proctor.tell({"type": "session", "system": None, "tools": [], "window": window, "seed": 18})
        proctor.items = []
        self.assertEqual(proctor.turn(user("go"))["type"], "unchanged")

    def test_what_cannot_be_is_refused(self):
        class Appends(Strategy):
            def append(self, message, budget):
                return None

        full = Appends()
        full.history = "full"
        for program in (Strategy(), full, FunctionStrategy(len, shape="other"), FunctionStrategy(len, moments=["x"])):
            with self.assertRaises(ValueError):
                serve(program, None, None)
        with self.assertRaises(ValueError):
            FunctionStrategy(len, moments=["append"])


class Programs(Case):
    """Whole programs, as processes."""

    def run_program(self, text, lines, beside=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.py")
            for name, content in {"mine.py": text, **(beside or {})}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(content)
            here = os.path.dirname(os.path.abspath(client.__file__))
            ended = subprocess.run(
                [sys.executable, path], input="".join(json.dumps(line) + "\n" for line in lines), text=True,
                capture_output=True, timeout=20, env={**os.environ, "PYTHONPATH": here},
            )
        return [json.loads(line) for line in ended.stdout.splitlines()], ended

    LINES = (
        {"id": 0, "type": "hello", "protocol": 2}, {"type": "session", "system": None, "tools": [], "window": {}, "seed": 1},
        {"id": 1, "type": "before_call", "call": 0, "messages": [{**user("go"), "tokens": 1}]},
    )

    def test_what_is_printed_goes_to_standard_error(self):
        program = (
            "import os\nfrom proctor_strategy import strategy\n@strategy(history='full')\n"
            "def compact(messages, budget, ask):\n    print('two')\n    os.system('echo three')\n"
            "    return messages[1:]\nprint('never')\n"
        )
        lines, ended = self.run_program(program, self.LINES)
        self.assertEqual([line["type"] for line in lines], ["hello", "messages"])
        self.assertEqual(lines[0]["history"], "full")
        self.assertEqual((ended.stderr.split(), ended.returncode), (["two", "three"], 0))

    def test_the_files_that_it_loaded_are_reported(self):
        program = "import helper\nfrom proctor_strategy import strategy\n@strategy\ndef compact(m, b, a):\n    return m\n"
        found = []
        for text in ("KEEP = 2\n", "KEEP = 2\n", "KEEP = 3\n"):
            lines, ended = self.run_program(program, self.LINES[:1], {"helper.py": text, "other.py": ""})
            self.assertEqual(set(lines[0]["files"]), {"mine.py", "helper.py", "packages"}, ended.stderr)
            found.append(lines[0]["files"])
        self.assertEqual(found[0], found[1])
        self.assertEqual([name for name in found[0] if found[0][name] != found[2][name]], ["helper.py"])

    def test_an_error_says_where(self):
        program = "from proctor_strategy import strategy\n@strategy\ndef compact(m, b, a):\n    return 1 / 0\n"
        lines, ended = self.run_program(program, self.LINES)
        self.assertEqual(lines[1], {"type": "error", "message": "ZeroDivisionError: division by zero", "id": 1})
        self.assertIn("line 4", ended.stderr)


if __name__ == "__main__":
    unittest.main()
