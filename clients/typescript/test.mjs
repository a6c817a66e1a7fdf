// Tests of the client: a small Proctor speaks with it. Run with `node --test test.mjs`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { AskFailed, Edits, Summary, safeCut, serve, textOf } from "./proctor_strategy.js";
import { expectCompaction } from "./proctor_testing.js";

const user = (text) => ({ role: "user", content: [{ type: "text", text }] });
const asks = (...ids) => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "Read", input: { path: id } })),
});
const gives = (...ids) => ({
  role: "user",
  content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: `result ${id}` })),
});
const said = (text, thinking) => ({
  role: "assistant",
  content: [{ type: "thinking", thinking, signature: "s" }, { type: "text", text }],
});
const clone = (value) => structuredClone(value);

/** Plays Proctor's side. It keeps the context, and sends it as changes of the last list. */
class Proctor {
  static async of(program, answers = []) {
    const proctor = new Proctor();
    proctor.answers = [...answers];
    proctor.asked = [];
    proctor.lines = [];
    proctor.id = -1;
    proctor.wanted = [];
    const said = [];
    proctor.next = () => new Promise((resolve) => (said.length ? resolve(said.shift()) : proctor.wanted.push(resolve)));
    const wrote = (line) => {
      assert.equal(line.indexOf("\n"), line.length - 1);
      const value = JSON.parse(line);
      const resolve = proctor.wanted.shift();
      resolve ? resolve(value) : said.push(value);
    };
    serve(program, proctor.source(), wrote);
    proctor.hello = await proctor.say({ type: "hello", protocol: 2 });
    proctor.begin();
    return proctor;
  }

  async *source() {
    for (;;) {
      while (!this.lines.length) await new Promise((resolve) => (this.wake = resolve));
      const bytes = Buffer.from(this.lines.shift());
      // Lines come in parts.
      for (let at = 0; at < bytes.length; at += 50) yield bytes.subarray(at, at + 50);
    }
  }

  begin() {
    [this.context, this.items, this.call] = [[], [], 0];
    const window = { tokens: 1000, effective_tokens: 900 };
    this.tell({ type: "session", system: "Be good.", tools: [], window, seed: 17 });
  }

  tell(line) {
    this.lines.push(JSON.stringify(line) + "\n");
    this.wake?.();
  }

  /** Numbers the line, and takes the number off its answer, which has to be the same. */
  async say(line) {
    this.tell({ id: ++this.id, ...line });
    const { id, ...answer } = await this.next();
    assert.equal(id, this.id);
    if (answer.type !== "ask") return answer;
    this.asked.push(answer);
    return this.say({ type: "answer", ...this.answers.shift() });
  }

  put(items) {
    return items.flatMap((item) => (Array.isArray(item) ? this.context.slice(...item) : [item]));
  }

  async turn(messages, type = "before_call", more = {}) {
    this.items.push(...messages.map((message) => ({ ...clone(message), tokens: 7 })));
    this.context = this.put(this.items);
    const sizes = { prompt_tokens: 500, fixed_tokens: 50, budget_tokens: 850 };
    const answer = await this.say({ type, call: this.call, messages: this.items, ...sizes, ...more });
    this.call += 1;
    this.items = this.context.length ? [[0, this.context.length]] : [];
    if (answer.type === "messages") {
      this.items = answer.messages.map((item) => {
        if (Array.isArray(item)) return item;
        const { of, ...message } = item;
        return { ...message, tokens: 9 };
      });
    }
    return answer;
  }
}

const START = [user("go"), asks("a"), gives("a"), asks("b"), gives("b")];

async function answerOf(beforeCall, options = {}, start = START) {
  return (await Proctor.of({ beforeCall, ...options })).turn(start);
}

test("what stays is a range", async () => {
  for (const [compact, expected] of [
    [(m) => m],
    [() => {}],
    [(m) => [...m]],
    [(m) => clone(m)],
    [(m) => m.map(({ content, role }) => ({ content, role }))],
    [(m) => [...m.slice(0, 1), ...m.slice(3)], [[0, 1], [3, 5]]],
    [(m) => clone([...m.slice(0, 1), ...m.slice(3)]), [[0, 1], [3, 5]]],
    [(m) => [...m, user("more")], [[0, 5], user("more")]],
    [(m) => [...m, m[0]], [[0, 5], { ...user("go"), of: 0 }]],
    [(m) => [{ role: "user", content: "x", name: "y" }], [{ role: "user", content: "x" }]],
    [() => [], []],
    [(m) => void m.pop(), [[0, 4]]],
  ]) {
    const wanted = expected ? { type: "messages", messages: expected } : { type: "unchanged" };
    assert.deepEqual(await answerOf(compact), wanted, String(compact));
  }
});

test("a change in place is noticed, and does not stay where it is not returned", async () => {
  const seen = [];
  const compact = (messages, budget) => {
    seen.push(clone(messages));
    messages[2].content[0].content = "gone";
    return budget.call ? messages.slice(0, 2) : messages;
  };
  const changed = gives("a");
  changed.content[0].content = "gone";
  const kept = await Proctor.of({ beforeCall: compact });
  assert.deepEqual((await kept.turn(START)).messages, [[0, 2], { ...changed, of: 2 }, [3, 5]]);
  const full = await Proctor.of({ beforeCall: compact, history: "full" });
  for (let call = 0; call < 3; call++) {
    full.items = call ? [[0, 5]] : [];
    await full.turn(call ? [] : START);
  }
  assert.deepEqual(seen.slice(1), [START, START, START]);
});

test("edits and summaries", async () => {
  const fresh = user("new");
  const edits = new Edits([[0, 1, [fresh]], [2, 4, []], [5, 5, [fresh]]], "because");
  const messages = [fresh, [1, 2], [4, 5], fresh];
  assert.deepEqual(await answerOf(() => edits), { type: "messages", messages, reason: "because" });
  assert.deepEqual(await answerOf(() => new Summary(1, 5, "all")), { type: "summary", from: 1, to: 5, text: "all" });
});

test("what goes wrong is said", async () => {
  for (const [compact, part] of [
    [() => { throw new Error("oh"); }, "oh"],
    [() => "text", "list of messages"],
    [() => [1], "no message"],
    [() => [{ role: "user", content: [{ type: "x", n: NaN }] }], "JSON"],
    [() => new Edits([[0, 6, []]]), "edit"],
    [() => new Summary(0, 6, "x"), "parted"],
  ]) {
    const answer = await answerOf(compact);
    assert.equal(answer.type, "error");
    assert.ok(answer.message.includes(part), answer.message);
  }
});

test("half a character is written as UTF-8", async () => {
  const answer = await answerOf((m) => [...m, user("half 😀".slice(0, 6) + ", whole 😀")]);
  assert.deepEqual(answer.messages[1], user("half \ufffd, whole 😀"));
});

test("ranges of the last list are put together", async () => {
  const seen = [];
  const proctor = await Proctor.of({ beforeCall: (m) => void seen.push(clone(m)) });
  await proctor.turn([...START, user("line\u2028end")]);
  for (const items of [[[3, 5], user("x"), [0, 2]], [[0, 1], [0, 1], [1, 4]], [[0, 2], user("y"), [2, 4]], []]) {
    proctor.items = items;
    const expected = proctor.put(items).map(({ role, content }) => ({ role, content }));
    await proctor.turn([]);
    assert.deepEqual(seen.at(-1), expected);
  }
});

test("the budget says what the lines say", async () => {
  const seen = [];
  const look = (m, budget) => {
    m[1].content = "x".repeat(9);
    seen.push({ ...budget, sizes: [m, m[0], clone(m[0]), m[1], "😀"].map((one) => budget.size(one)) });
    budget.reason = "why";
  };
  const proctor = await Proctor.of({ beforeCall: look, overflow: look });
  assert.equal((await proctor.turn([user("go"), asks("a")], "before_call", { seconds: 5 })).reason, "why");
  await proctor.turn([], "overflow", { attempt: 2 });
  const first = {
    moment: "before_call", call: 0, used: 500, fixed: 50, tokens: 850, seconds: 5, overflow: false, attempt: 0,
    system: "Be good.", tools: [], window: 1000, effective: 900, seed: 17, reason: undefined, sizes: [10, 7, 7, 3, 1],
  };
  assert.deepEqual(seen[0], first);
  const later = { moment: "overflow", call: 1, seconds: null, overflow: true, attempt: 2, sizes: [16, 7, 7, 9, 1] };
  assert.deepEqual(seen[1], { ...first, ...later });
});

test("texts and cuts", () => {
  assert.equal(textOf(asks("a")), 'Read {"path":"a"}');
  assert.equal(textOf(gives("a", "b")), "result a\nresult b");
  const messages = [user("go"), asks("a", "b"), gives("a"), gives("b"), asks("c"), gives("c"), said("done", "")];
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7].map((at) => safeCut(messages, at)), [0, 1, 1, 1, 4, 4, 6, 7]);
  assert.deepEqual([-1, -2, -4, -99].map((at) => safeCut(messages, at)), [6, 4, 1, 0]);
});

test("a request holds ranges and what is set; a failure destroys nothing", async () => {
  const answers = [{ text: "one", stop: "end" }, { text: "", stop: "refusal" }];
  const proctor = await Proctor.of({
    async beforeCall(messages, budget, ask) {
      const options = { system: "You sum up.", maxTokens: 9, model: "fast" };
      const [text, reply] = await Promise.all([
        ask([...messages.slice(0, 2), user("Sum it up.")], options),
        ask.full("More?", { withPrefix: true }),
      ]);
      return [user(`${text} ${reply.text} ${reply.stop}`)];
    },
  }, answers);
  assert.deepEqual((await proctor.turn(START)).messages, [user("one  refusal")]);
  assert.deepEqual(proctor.asked, [
    { type: "ask", messages: [[0, 2], user("Sum it up.")], max_tokens: 9, system: "You sum up.", model: "fast" },
    { type: "ask", messages: [{ role: "user", content: "More?" }], max_tokens: 2000, with_prefix: true },
  ]);
  for (const [answer, kind] of [
    [{ error: "timeout" }, "timeout"],
    [{ text: "x", stop: "refusal" }, "refusal"],
    [{ text: " ", stop: "end" }, "empty"],
  ]) {
    const caught = async (m, b, ask) => {
      const error = await ask("Sum it up.").catch((error) => error);
      assert.ok(error instanceof AskFailed);
      return [user(error.kind)];
    };
    assert.deepEqual((await (await Proctor.of({ beforeCall: caught }, [answer])).turn(START)).messages, [user(kind)]);
    const uncaught = async (m, b, ask) => {
      m[0].content = "gone";
      return [user(await ask("Sum it up."))];
    };
    const proctor = await Proctor.of({ beforeCall: uncaught }, [answer]);
    assert.equal((await proctor.turn(START)).type, "unchanged");
  }
});

test("OpenAI's shape, there and back", async () => {
  const results = gives("a", "b", "c");
  results.content[1].is_error = true;
  results.content.push({ type: "text", text: "note" });
  const call = asks("a", "b", "c");
  call.content.unshift({ type: "thinking", thinking: "hm", signature: "s" });
  const start = [user("go"), call, results, asks("d"), gives("d"), gives("e")];
  const answer = (compact) => answerOf(compact, { shape: "openai" }, start);
  const seen = [];
  assert.deepEqual(await answer((m) => void seen.push(...clone(m))), { type: "unchanged" });
  const roles = "user assistant tool tool tool user assistant tool tool";
  assert.equal(seen.map((one) => one.role).join(" "), roles);
  assert.deepEqual(seen[3], { role: "tool", tool_call_id: "b", content: "result b" });
  assert.equal(seen[6].tool_calls[0].function.arguments, '{"path":"d"}');
  const short = clone(results);
  short.content[1].content = "short";
  const without = { role: "user", content: results.content.filter((_, at) => at !== 1) };
  const called = clone(call);
  called.content[1].input = {};
  for (const [compact, expected] of [
    [(m) => clone(m)],
    [(m) => [...m.slice(0, 1), ...m.slice(6)], [[0, 1], [3, 6]]],
    [(m) => m.filter((_, at) => at !== 3), [[0, 2], { ...without, of: 2 }, [3, 6]]],
    [(m) => void (m[3].content = "short"), [[0, 2], { ...short, of: 2 }, [3, 6]]],
    [(m) => m.with(3, { ...m[3], content: "short" }), [[0, 2], { ...short, of: 2 }, [3, 6]]],
    [(m) => void (m[1].tool_calls[0].function.arguments = "{}"), [[0, 1], { ...called, of: 1 }, [2, 6]]],
    [(m) => [{ role: "system", content: "new" }], [user("new")]],
    [(m) => new Edits([[2, 6, [{ role: "user", content: "new" }]]]), [[0, 2], user("new"), [3, 6]]],
  ]) {
    const wanted = expected ? { type: "messages", messages: expected } : { type: "unchanged" };
    assert.deepEqual(await answer(compact), wanted, String(compact));
  }
  const summary = { type: "summary", from: 1, to: 3, text: "s" };
  assert.deepEqual(await answer(() => new Summary(1, 6, "s")), summary);
  assert.equal((await answer(() => new Summary(1, 4, "s"))).type, "error");
});

test("free text as arguments survives", async () => {
  const patch = { type: "tool_use", id: "p", name: "apply_patch", input: "*** Begin Patch" };
  const call = { role: "assistant", content: [{ type: "text", text: "A long word." }, patch] };
  const shorten = (messages) => {
    assert.equal(messages[0].tool_calls[0].function.arguments, '{"input":"*** Begin Patch"}');
    messages[0].content = "Word.";
  };
  const { messages } = await answerOf(shorten, { shape: "openai" }, [call]);
  assert.deepEqual(messages[0].content, [{ type: "text", text: "Word." }, patch]);
});

test("a program takes the moments that it has", async () => {
  const program = {
    name: "mine",
    kind: "clear",
    breaks: { never_larger: "why" },
    start(session) { this.seen = [session.window]; },
    append(message, budget) { return budget.size(message) > 5 ? user("short") : undefined; },
    afterCall(messages) { this.seen.push(messages.length); return messages.slice(1); },
  };
  const proctor = await Proctor.of(program);
  assert.deepEqual(proctor.hello, {
    type: "hello", protocol: 2, name: "mine", history: "kept", context: "changes", moments: ["append", "after_call"],
    kind: "clear", breaks: [{ law: "never_larger", reason: "why" }],
  });
  const append = (tokens) => proctor.say({ type: "append", call: 0, message: { ...user("go"), tokens } });
  assert.deepEqual(await append(9), { type: "message", message: user("short") });
  assert.deepEqual(await append(1), { type: "unchanged" });
  assert.deepEqual((await proctor.turn(START, "after_call")).messages, [[1, 5]]);
  assert.deepEqual(program.seen, [1000, 5]);
  await assert.rejects(serve({}, [], () => {}));
  await assert.rejects(serve({ ...program, shape: "openai" }, [], () => {}));
});

test("a start that fails is said where an answer is wanted", async () => {
  const start = (session) => { if (session.seed === 17) throw new Error("seed"); };
  const proctor = await Proctor.of({ start, beforeCall: (m) => m });
  assert.equal((await proctor.turn(START)).type, "error");
  proctor.tell({ type: "session", system: null, tools: [], window: {}, seed: 18 });
  proctor.items = [];
  assert.equal((await proctor.turn(START)).type, "unchanged");
});

test("a whole program prints to standard error", () => {
  const folder = mkdtempSync(join(tmpdir(), "client-"));
  try {
    const client = JSON.stringify(new URL("./proctor_strategy.js", import.meta.url).href);
    const mine = join(folder, "mine.mjs");
    writeFileSync(mine, `import { strategy } from ${client};
const print = async (messages) => { console.log("printed"); return helper(messages); };
export const compact = strategy(print, { meta: import.meta });
const helper = (messages) => messages.slice(1);
`);
    writeFileSync(join(folder, "other.mjs"), `import { compact } from ${JSON.stringify(pathToFileURL(mine).href)};
console.log(typeof compact);
`);
    const lines = [
      { id: 0, type: "hello", protocol: 2 }, { type: "session", system: null, tools: [], window: {}, seed: 1 },
      { id: 1, type: "before_call", call: 0, messages: [{ ...user("go"), tokens: 1 }] },
    ];
    const input = lines.map((line) => JSON.stringify(line) + "\n").join("");
    const options = { input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] };
    const output = execFileSync(process.execPath, [mine], options).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(output.map((line) => line.type), ["hello", "messages"]);
    assert.equal(execFileSync(process.execPath, [join(folder, "other.mjs")], options), "function\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

// The helper for tests, with functions that go wrong: with the program, `PROCTOR=PATH`.
const program = process.env.PROCTOR && resolve(process.env.PROCTOR);
const needsProgram = { skip: !program && "needs `PROCTOR=PATH`" };

test("functions that go wrong are told, eight at the same time", needsProgram, async () => {
  const told = [
    [() => { throw new Error("no such tool"); }, /`answers` is broken[^]*Error: no such tool/],
    [() => null, null],
    [() => undefined, null],
    [function* (messages) { yield* messages; }, /a strategy returns a list of messages/],
    [async (messages) => messages, null],
    [(messages) => void messages.splice(1, messages.length - 2), /`valid_context` is broken/],
    [(messages) => messages.map(({ content }) => ({ text: content })), /item 0 of the answer is no message/],
    [() => "all of it", /a strategy returns a list of messages/],
  ];
  await Promise.all(told.map(async ([compact, expected]) => {
    const laws = expectCompaction(compact, { program }).toKeepAllLaws();
    await (expected ? assert.rejects(laws, expected) : laws);
  }));
  await assert.rejects(expectCompaction(told[0][0], { program }).bill(), (error) =>
    /ended with 104: failed: code-review-s1.*Error: no such tool\nerror: 12 of 48/.test(error.message));
});

test("a function gets a hundred thousand messages", needsProgram, async () => {
  const folder = mkdtempSync(join(tmpdir(), "many-"));
  try {
    const messages = Array.from({ length: 100_000 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `${at}` }));
    writeFileSync(join(folder, "many.json"), JSON.stringify({ messages }));
    const newest = expectCompaction((messages) => messages.slice(-3), { program });
    assert.equal(await newest.number("completion", join(folder, "many.json")), 1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a missing program and one of another version are told", () => {
  const folder = mkdtempSync(join(tmpdir(), "other-"));
  try {
    const helper = JSON.stringify(new URL("./proctor_testing.js", import.meta.url).href);
    const script = `import { laws } from ${helper}; try { laws(); } catch (error) { console.log(error.message); }`;
    const env = { ...process.env, PATH: folder };
    const said = () => execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8", env });
    assert.match(said(), /^the program `proctor` is not installed: the package/);
    writeFileSync(join(folder, "proctor"), "#!/bin/sh\necho proctor 0.0.9\n", { mode: 0o755 });
    assert.match(said(), /^`proctor` is 0\.0\.9, and this helper belongs to/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
