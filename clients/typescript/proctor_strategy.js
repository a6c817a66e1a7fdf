/**
 * Write a compaction strategy for Proctor in TypeScript or JavaScript. One file, no dependencies, Node 20 or later.
 *
 *     import { strategy } from "./proctor_strategy.js";
 *
 *     strategy(async (messages, budget, ask) => messages);
 *
 * That is a whole program: it speaks Proctor's protocol on standard input and output. A module that others import as
 * well passes `{ meta: import.meta }`, and then starts only where it is the program itself.
 *
 * A function returns the list of messages that the model is to see. Messages that it was given stay what they are, by
 * identity or by equality; a message that was changed in place is noticed. `undefined` stands for the list that was
 * given, as the function left it. It may also return `new Edits(…)` or `new Summary(…)`. Where `ask` fails and the
 * function does not catch it, nothing is changed. What is written to standard output goes to standard error.
 */
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
const PROTOCOL = 2;
const MOMENTS = ["append", "before_call", "overflow", "after_call"];
/**
 * A model gave no text. `kind` is `too_long`, `timeout`, `rate_limited`, `server`, `failed`, `refusal`, `tool_use`, or
 * `empty`.
 */
export class AskFailed extends Error {
    kind;
    constructor(kind) {
        super(`the model gave no text: ${kind}`);
        this.name = "AskFailed";
        this.kind = kind;
    }
}
/** Ranges that make way for messages: `new Edits([[2, 9, [message]]])`. Ascending and disjoint; ends are exclusive. */
export class Edits {
    edits;
    reason;
    constructor(edits, reason) {
        this.edits = edits;
        this.reason = reason;
    }
}
/** One message of the user in place of the messages from `from` up to `to`. */
export class Summary {
    from;
    to;
    text;
    reason;
    constructor(from, to, text, reason) {
        this.from = from;
        this.to = to;
        this.text = text;
        this.reason = reason;
    }
}
/** What is the same at every call. `window` and `effective` are tokens, `seed` is for random draws. */
export class Session {
    system;
    tools;
    window;
    effective;
    seed;
    constructor(line) {
        this.system = line.system ?? null;
        this.tools = line.tools ?? [];
        this.window = line.window?.tokens ?? 0;
        this.effective = line.window?.effective_tokens ?? this.window;
        this.seed = line.seed ?? 0;
    }
}
/**
 * The present: how large the prompt is, and how large it may be. All sizes are tokens.
 *
 * `used` is the prompt as it would be sent now, `fixed` the part of it that is system prompt and tools, `tokens` the
 * messages that fit into the effective window. `moment` is the name of what happens, `overflow` whether the provider
 * has just refused the prompt. A `reason` that is set here goes into the log.
 */
export class Budget extends Session {
    moment;
    call;
    used;
    fixed;
    tokens;
    seconds;
    overflow;
    attempt;
    reason;
    #view;
    constructor(line, session, view) {
        super({});
        Object.assign(this, session);
        this.moment = line.type;
        this.call = line.call ?? 0;
        this.used = line.prompt_tokens ?? 0;
        this.fixed = line.fixed_tokens ?? 0;
        this.tokens = line.budget_tokens ?? 0;
        this.seconds = line.seconds ?? null;
        this.overflow = line.type === "overflow";
        this.attempt = line.attempt ?? 0;
        this.#view = view;
    }
    /** Tokens as counted by Proctor for messages that were given, a quarter of the characters for new ones. */
    size(what) {
        if (typeof what === "string")
            return Math.ceil(chars(what) / 4);
        if (Array.isArray(what))
            return what.reduce((sum, one) => sum + this.size(one), 0);
        const place = this.#view.find(what);
        return place === undefined ? this.size(textOf(what)) : this.#view.facts[place].tokens;
    }
}
/** Makes a program of a function. */
export function strategy(compact, options = {}) {
    const { moments = ["before_call", "overflow"], meta, ...rest } = options;
    if (moments.includes("append"))
        throw new Error("a function does not take `append`: see `run`");
    const program = rest;
    for (const moment of moments)
        program[methodOf(moment)] = compact;
    if (!meta || (process.argv[1] && realpathSync(process.argv[1]) === realpathSync(fileURLToPath(meta.url)))) {
        // The module is read to its end first.
        setImmediate(() => run(program));
    }
    return compact;
}
/** Speaks with Proctor until it hangs up. What anything else writes goes to standard error. */
export function run(program) {
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    return serve(program, process.stdin, (line) => void write(line));
}
/** The same on any source of bytes. */
export async function serve(program, source, write) {
    const { history = "kept", shape = "anthropic", name, kind = "other", breaks = [] } = program;
    if (!["kept", "full"].includes(history) || !["anthropic", "openai"].includes(shape)) {
        throw new Error("`history` is `kept` or `full`, `shape` is `anthropic` or `openai`");
    }
    if (!["window", "clear", "summarise", "other"].includes(kind) || typeof breaks !== "object" || breaks === null) {
        throw new Error("`kind` is `window`, `clear`, `summarise` or `other`, `breaks` a list of laws or their reasons");
    }
    const moments = MOMENTS.filter((moment) => typeof program[methodOf(moment)] === "function");
    if (!moments.length)
        throw new Error("a strategy has one at least of append, beforeCall, overflow, afterCall");
    if (program.append && (shape === "openai" || history === "full")) {
        throw new Error('`append` needs `shape: "anthropic"` and `history: "kept"`');
    }
    const lines = linesOf(source);
    /** Of the line that is to be answered. */
    let id;
    function read(text) {
        const line = JSON.parse(text);
        id = line.id ?? id;
        return line;
    }
    const say = (line) => write(lineOf({ ...line, id }));
    let session = new Session({});
    let view = new View(shape);
    let broken;
    let asking = Promise.resolve();
    /** Came where the answer of a model was due: Proctor no longer waits, and went on. */
    let later;
    async function full(what, options = {}) {
        let messages = typeof what === "string" ? [{ role: "user", content: what }] : what;
        let system = options.system;
        if (shape === "openai" && system === undefined && messages[0]?.role === "system") {
            system = textOf(messages[0].content);
            messages = messages.slice(1);
        }
        const line = {
            type: "ask",
            messages: view.pieces(messages, view.changed(), false),
            max_tokens: options.maxTokens ?? 2000,
            system,
            model: options.model,
            with_prefix: options.withPrefix || undefined,
        };
        // One after the other: each repeats the `id` of the answer before.
        const answer = asking.then(async () => {
            if (later !== undefined)
                throw new AskFailed("failed");
            say(line);
            const next = await lines.next();
            if (next.done)
                throw new AskFailed("failed");
            const came = read(next.value);
            if (came.type === "answer")
                return came;
            later = came;
            throw new AskFailed("failed");
        });
        asking = answer.catch(() => { });
        const { text, stop, error } = await answer;
        if (error)
            throw new AskFailed(error);
        return { text: text ?? "", stop: stop ?? "end" };
    }
    async function text(what, options) {
        const reply = await full(what, options);
        if (reply.stop === "tool_use" || reply.stop === "refusal")
            throw new AskFailed(reply.stop);
        if (!reply.text.trim())
            throw new AskFailed("empty");
        return reply.text;
    }
    const ask = Object.assign(text, { full });
    async function answer(line) {
        if (line.type === "hello") {
            const laws = Array.isArray(breaks)
                ? breaks.map((law) => ({ law }))
                : Object.entries(breaks).map(([law, reason]) => ({ law, reason }));
            return { type: "hello", protocol: PROTOCOL, name, history, context: "changes", moments, kind, breaks: laws };
        }
        if (line.type === "session") {
            session = new Session(line);
            view = new View(shape);
            broken = undefined;
            try {
                await program.start?.(session);
            }
            catch (error) {
                // The next line that wants an answer gets it.
                broken = { error };
            }
            return undefined;
        }
        if (broken)
            throw broken.error;
        if (line.type === "append") {
            const alone = new View("anthropic");
            alone.update([line.message]);
            const given = alone.shown[0];
            const message = (await program.append(given, new Budget(line, session, alone))) ?? given;
            if (same(message, alone.kept[0]))
                return { type: "unchanged" };
            return { type: "message", message: alone.pieces([message], new Set([0]), false)[0] };
        }
        if (!MOMENTS.includes(line.type))
            throw new Error(`a line of unknown type \`${line.type}\``);
        view.update(line.messages);
        const budget = new Budget(line, session, view);
        const given = [...view.shown];
        try {
            const result = await program[methodOf(line.type)](given, budget, ask);
            const said = view.answer(result ?? given);
            return budget.reason ? { ...said, reason: budget.reason } : said;
        }
        catch (error) {
            if (!(error instanceof AskFailed))
                throw error;
            view.mend(view.changed());
            return { type: "unchanged", reason: error.message };
        }
    }
    let told = "";
    for (;;) {
        const next = later === undefined ? await lines.next() : undefined;
        if (next?.done)
            break;
        const line = next ? read(next.value) : later;
        later = undefined;
        try {
            const said = await answer(line);
            if (said && later === undefined)
                say(said);
        }
        catch (error) {
            if (later !== undefined)
                continue;
            // Whatever the program does wrong: its cell fails with this reason.
            const trace = `${error?.stack ?? error}\n`;
            if (trace !== told)
                process.stderr.write(trace);
            told = trace;
            say({ type: "error", message: String(error) });
        }
    }
}
/** The text of a message, a block or a list of blocks, as Proctor counts it. */
export function textOf(what) {
    if (typeof what === "string")
        return what;
    if (!what)
        return "";
    if (Array.isArray(what))
        return what.map(textOf).join("\n");
    if (what.type === "text" || what.type === "thinking")
        return what[what.type] ?? "";
    if (what.type === "tool_use")
        return `${what.name} ${JSON.stringify(what.input)}`;
    if (what.type === "image" || what.type === "image_url")
        return "";
    if (what.type !== "tool_result" && !("role" in what))
        return JSON.stringify(what);
    const calls = (what.tool_calls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`);
    return [...(what.content || !calls.length ? [textOf(what.content)] : []), ...calls].join("\n");
}
/**
 * The nearest place at `at` or before it where a cut parts no tool result from its call. A negative place counts from
 * the end. Providers refuse a result without its call.
 */
export function safeCut(messages, at) {
    at = at < 0 ? Math.max(messages.length + at, 0) : Math.min(at, messages.length);
    const missing = new Set();
    for (let place = messages.length - 1; place >= 0; place--) {
        if (place < at && !missing.size)
            return at;
        at = Math.min(at, place);
        const message = messages[place];
        const blocks = Array.isArray(message.content) ? message.content : [];
        for (const block of blocks)
            if (block.type === "tool_result")
                missing.add(block.tool_use_id);
        if ("tool_call_id" in message)
            missing.add(message.tool_call_id);
        for (const block of blocks)
            if (block.type === "tool_use")
                missing.delete(block.id);
        for (const call of message.tool_calls ?? [])
            missing.delete(call.id);
    }
    return missing.size ? 0 : at;
}
function methodOf(moment) {
    return moment.replace(/_(.)/, (_, letter) => letter.toUpperCase());
}
/** The characters of a text: a pair of surrogates is one. */
function chars(text) {
    return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}
/** A line of the protocol. Half a character, which a cut may leave, is no UTF-8: it becomes U+FFFD. */
function lineOf(value) {
    const whole = (_, item) => {
        if (typeof item === "number" && !Number.isFinite(item))
            throw new TypeError(`${item} is no JSON`);
        return typeof item === "string" ? item.toWellFormed() : item;
    };
    return JSON.stringify(value, whole) + "\n";
}
async function* linesOf(source) {
    let parts = [];
    for await (const chunk of source) {
        let start = 0;
        for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
            parts.push(chunk.subarray(start, end));
            yield Buffer.concat(parts).toString("utf8");
            parts = [];
            start = end + 1;
        }
        if (start < chunk.length)
            parts.push(chunk.subarray(start));
    }
    return undefined;
}
/** Objects and lists anew. */
function copy(value) {
    if (Array.isArray(value))
        return value.map(copy);
    if (value === null || typeof value !== "object")
        return value;
    const made = {};
    for (const key in value)
        made[key] = copy(value[key]);
    return made;
}
/** Whether two values are the same JSON. A key without a value is none. */
function same(a, b) {
    if (a === b)
        return true;
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object")
        return false;
    if (Array.isArray(a) || Array.isArray(b)) {
        if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length)
            return false;
        for (let at = 0; at < a.length; at++)
            if (!same(a[at], b[at]))
                return false;
        return true;
    }
    for (const key in a)
        if (!same(a[key], b[key]))
            return false;
    for (const key in b)
        if (b[key] !== undefined && a[key] === undefined)
            return false;
    return true;
}
/** The same as a text, whatever the order of keys. */
function keyOf(value) {
    return JSON.stringify(value, (_, item) => item && typeof item === "object" && !Array.isArray(item)
        ? Object.fromEntries(Object.keys(item).sort().map((key) => [key, item[key]]))
        : item);
}
/** The first place in a sorted list whose number is not below this one. */
function firstFrom(sorted, number) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (sorted[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
/**
 * The list that Proctor sent last, and what the program was shown of it.
 *
 * A message is shown as one or, in OpenAI's shape, as several. `kept` are the shown ones as they were: what differs was
 * changed by the program. `facts` are the tokens of each, and the blocks that it shows; `homes` says which of Proctor's
 * messages it shows.
 */
class View {
    shape;
    homes = [];
    shown = [];
    kept = [];
    facts = [];
    /** By identity, and by the names of calls. May be stale. */
    places = new Map();
    /** The kept ones by content, but for `fresh`. */
    index = new Map();
    fresh = [];
    constructor(shape) {
        this.shape = shape;
    }
    /** The number of Proctor's messages. */
    size() {
        return this.homes.length ? this.homes[this.homes.length - 1] + 1 : 0;
    }
    /** Takes over the next list: messages, and ranges of the last list. */
    update(items) {
        const stays = Array.isArray(items[0]) && items[0][0] === 0 ? items[0][1] : 0;
        const first = firstFrom(this.homes, stays);
        const { homes, shown, kept, facts } = this;
        const old = { homes: [...homes], shown: [...shown], kept: [...kept], facts: [...facts] };
        for (const list of [homes, shown, kept, facts])
            list.length = first;
        let used = stays;
        for (const item of stays ? items.slice(1) : items) {
            const home = this.size();
            const begin = this.shown.length;
            if (Array.isArray(item)) {
                for (let at = firstFrom(old.homes, item[0]); at < firstFrom(old.homes, item[1]); at++) {
                    this.homes.push(old.homes[at] - item[0] + home);
                    this.kept.push(old.kept[at]);
                    this.shown.push(item[0] >= used ? old.shown[at] : copy(old.kept[at]));
                    this.facts.push(old.facts[at]);
                }
                used = Math.max(used, item[1]);
            }
            else {
                const { tokens = 0, ...message } = item;
                const members = this.shape === "openai" ? toOpenAi(message) : [{ message, blocks: message.content }];
                const sizes = shares(tokens, members.map((member) => member.message));
                members.forEach(({ message, blocks }, at) => {
                    this.homes.push(home);
                    this.kept.push(message);
                    this.shown.push(copy(message));
                    this.facts.push({ tokens: sizes[at], blocks });
                    this.fresh.push(message);
                });
            }
            for (let at = begin; at < this.shown.length; at++) {
                this.places.set(this.shown[at], at);
                this.places.set(this.kept[at], at);
                if (this.shape === "openai")
                    for (const name of callNames(this.kept[at]))
                        this.places.set(name, at);
            }
        }
    }
    /** The places that the program changed. */
    changed() {
        const places = new Set();
        for (let at = 0; at < this.shown.length; at++)
            if (!same(this.shown[at], this.kept[at]))
                places.add(at);
        return places;
    }
    /** What was changed is shown as it was from now on: Proctor sends the changed version, if it stays. */
    mend(changed) {
        for (const at of changed) {
            this.places.delete(this.shown[at]);
            this.shown[at] = copy(this.kept[at]);
            this.places.set(this.shown[at], at);
        }
    }
    /** The place of this very object, changed or not. */
    own(message) {
        const at = this.places.get(message);
        return at !== undefined && this.shown[at] === message ? at : undefined;
    }
    /** The place of a message that says this; the expected one if it does. */
    find(message, expected = 0) {
        let at = this.own(message);
        if (at === undefined && expected < this.kept.length && same(this.kept[expected], message))
            at = expected;
        if (at === undefined) {
            for (const kept of this.fresh)
                this.index.set(keyOf(kept), kept);
            this.fresh = [];
            at = this.places.get(this.index.get(keyOf(message)));
        }
        return at !== undefined && at < this.kept.length && same(this.kept[at], message) ? at : undefined;
    }
    /** The line that says this result. */
    answer(result) {
        const reason = result.reason || undefined;
        const changed = this.changed();
        if (result instanceof Summary) {
            this.mend(changed);
            return { type: "summary", from: this.border(result.from), to: this.border(result.to), text: result.text, reason };
        }
        if (result instanceof Edits) {
            const messages = [];
            let at = 0;
            for (const [from, to, with_] of result.edits) {
                if (!(at <= from && from <= to && to <= this.shown.length)) {
                    throw new RangeError(`the edit from ${from} to ${to} is out of order, or behind the last message`);
                }
                messages.push(...this.shown.slice(at, from), ...with_);
                at = to;
            }
            result = messages.concat(this.shown.slice(at));
        }
        if (!Array.isArray(result))
            throw new TypeError(`a strategy returns a list of messages, not ${typeof result}`);
        const pieces = this.pieces(result, changed);
        this.mend(changed);
        const all = this.size();
        const whole = all ? JSON.stringify(pieces) === `[[0,${all}]]` : !pieces.length;
        return whole ? { type: "unchanged", reason } : { type: "messages", messages: pieces, reason };
    }
    /** The nearest place at `end` or before it where one of Proctor's messages begins. */
    whole(end) {
        while (end > 0 && end < this.shown.length && this.homes[end - 1] === this.homes[end])
            end--;
        return end;
    }
    /** A place among the shown messages as one among Proctor's. */
    border(at) {
        if (!(at >= 0 && at <= this.shown.length) || this.whole(at) !== at) {
            throw new RangeError(`the messages cannot be parted at ${at}`);
        }
        return at < this.shown.length ? this.homes[at] : this.size();
    }
    /** Ranges of what was sent, and messages that are new; changed ones say what they are a version of. */
    pieces(messages, changed, withOf = true) {
        const pieces = [];
        let at = 0;
        let expected = 0;
        /** Of the last piece: its home, and whether it holds results. */
        let run = { results: false };
        /** A message stands in one range: the second time it is written out. */
        const taken = new Set(changed);
        while (at < messages.length) {
            const message = messages[at];
            if (typeof message?.role !== "string")
                throw new TypeError(`item ${at} of the answer is no message`);
            let origin = this.own(message);
            let intact = origin !== undefined && !changed.has(origin);
            if (origin === undefined) {
                origin = this.find(message, expected);
                intact = origin !== undefined;
            }
            const last = pieces[pieces.length - 1];
            if (intact && origin !== undefined) {
                const end = this.stretch(messages, at, origin, taken);
                if (end > origin && (origin === 0 || this.homes[origin - 1] !== this.homes[origin])) {
                    const [begin, stop] = [this.homes[origin], this.homes[end - 1] + 1];
                    if (Array.isArray(last) && last[1] === begin)
                        last[1] = stop;
                    else
                        pieces.push([begin, stop]);
                    for (let place = origin; place < end; place++)
                        taken.add(place);
                    at += end - origin;
                    expected = end;
                    run = { results: false };
                    continue;
                }
            }
            at++;
            if (origin !== undefined)
                expected = origin + 1;
            let content = message.content ?? "";
            const results = message.role === "tool";
            const role = message.role === "assistant" ? "assistant" : "user";
            let home;
            if (this.shape === "openai") {
                origin ??= this.version(message);
                home = origin === undefined ? undefined : this.homes[origin];
                const old = origin === undefined ? [] : this.facts[origin].blocks;
                content = intact ? [...old] : fromOpenAi(message, old);
                const joins = role === "user" && last && !Array.isArray(last) && last.role === "user" && run.home === home;
                if (joins && (home !== undefined || (run.results && results))) {
                    last.content.push(...content);
                    continue;
                }
            }
            else if (origin !== undefined) {
                home = this.homes[origin];
            }
            run = { home, results };
            pieces.push(withOf && home !== undefined ? { role, content, of: home } : { role, content });
        }
        return pieces;
    }
    /** How far the shown messages from `begin` on are those of the answer from `at` on, in whole messages. */
    stretch(messages, at, begin, taken) {
        let end = begin;
        for (; at < messages.length && end < this.shown.length && !taken.has(end); at++, end++) {
            if (messages[at] !== this.shown[end] && !same(messages[at], this.kept[end]))
                break;
        }
        return Math.max(this.whole(end), begin);
    }
    /** The place of a message with the same tool calls or result. */
    version(message) {
        for (const name of callNames(message)) {
            const at = this.places.get(name);
            if (at !== undefined && at < this.kept.length && callNames(this.kept[at]).includes(name))
                return at;
        }
        return undefined;
    }
}
/** The tokens of a message, shared among those that show it by their characters. */
function shares(tokens, messages) {
    if (messages.length === 1)
        return [tokens];
    const lengths = messages.map((message) => textOf(message).length);
    const all = Math.max(lengths.reduce((sum, length) => sum + length, 0), 1);
    let [run, before] = [0, 0];
    return lengths.map((length) => {
        run += length;
        const until = Math.floor((tokens * run) / all);
        const share = until - before;
        before = until;
        return share;
    });
}
/** The names under which versions of a tool call or result know each other. */
function callNames(message) {
    const names = "tool_call_id" in message ? [`result ${message.tool_call_id}`] : [];
    return names.concat((message.tool_calls ?? []).map((call) => `call ${call.id}`));
}
/** The messages of OpenAI's chat API that say the same, each with its blocks. */
function toOpenAi({ role, content }) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "assistant") {
        const said = blocks.filter((block) => !["tool_use", "thinking", "redacted_thinking"].includes(block.type));
        const calls = blocks.filter((block) => block.type === "tool_use").map((block) => ({
            id: block.id,
            type: "function",
            function: { name: block.name, arguments: argumentsOf(block) },
        }));
        const message = { role, content: said.length || !calls.length ? toParts(said) : null };
        return [{ message: calls.length ? { ...message, tool_calls: calls } : message, blocks }];
    }
    const results = blocks.filter((block) => block.type === "tool_result");
    const said = blocks.filter((block) => block.type !== "tool_result");
    const members = results.map((block) => ({
        message: { role: "tool", tool_call_id: block.tool_use_id, content: toParts(block.content) },
        blocks: [block],
    }));
    if (said.length || !results.length)
        members.push({ message: { role: "user", content: toParts(said) }, blocks: said });
    return members;
}
/** The arguments of a call, which are always an object in OpenAI's shape: free text is `{"input": …}`. */
function argumentsOf({ input }) {
    const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
    return JSON.stringify(isObject ? input : { input });
}
/** Content of blocks as OpenAI's: a text where it is one. */
function toParts(content) {
    if (!Array.isArray(content))
        return content ?? "";
    if (!content.length)
        return "";
    if (content.length === 1 && content[0].type === "text")
        return content[0].text;
    return content.map((block) => {
        const { type, source, text } = block;
        if (type === "image" && (source?.type === "base64" || source?.type === "url")) {
            return { type: "image_url", image_url: { url: source.url ?? `data:${source.media_type};base64,${source.data}` } };
        }
        return { type: "text", text: type === "text" ? text : JSON.stringify(block) };
    });
}
/** The blocks of a message of OpenAI's; `old` are those of the version before, for what OpenAI's does not say. */
function fromOpenAi({ role, content, ...message }, old) {
    const parts = Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }];
    const said = parts.map((part) => {
        if (part.type !== "image_url")
            return part;
        const { url } = part.image_url;
        const [, media_type, data] = /^data:([^;]*);base64,(.*)$/s.exec(url) ?? [];
        const source = data === undefined ? { type: "url", url } : { type: "base64", media_type, data };
        return { type: "image", source };
    });
    if (role === "tool") {
        const failed = old.some((block) => block.is_error && block.tool_use_id === message.tool_call_id);
        const result = { type: "tool_result", tool_use_id: message.tool_call_id };
        const words = Array.isArray(content) ? said : (content ?? "");
        return [{ ...result, content: words, ...(failed ? { is_error: true } : {}) }];
    }
    if (role !== "assistant")
        return said;
    const thinking = old.filter((block) => ["thinking", "redacted_thinking"].includes(block.type));
    const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => {
        const same = old.find((block) => block.type === "tool_use" && block.id === id && argumentsOf(block) === text);
        return { type: "tool_use", id, name, input: same ? same.input : JSON.parse(text || "{}") };
    });
    return [...thinking, ...(!content && calls.length ? [] : said), ...calls];
}
