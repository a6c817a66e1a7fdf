/**
 * An extension of pi that handles `session_before_compact`, as a strategy.
 *
 * Product   pi 1.5.2 (npm @earendil-works/pi-coding-agent). The extension is called as pi does, what surrounds it is a
 *           stand-in
 * Run       proctor run sessions/ --strategy-cmd 'node pi_before_compact.mjs my-extension.mjs'
 *
 * --reserve       tokens that stay free: over the window less these it compacts (16384)
 * --keep-recent   tokens at the end that stay (20000)
 * --max-tokens    the longest summary that is asked for (8192)
 *
 * The default export gets an object with `on`; the handler gets `{preparation, branchEntries, reason, willRetry,
 * signal}`. `{cancel: true}` changes nothing, `{compaction: {summary, firstKeptEntryId}}` is used, and for no answer a
 * plain summary is asked for. A model that the handler asks with `ctx.modelRegistry.complete` is Proctor's. So it is
 * where a prompt was refused. Verified against the package's documentation and types: the event, both results, where a
 * cut may be, both defaults, `messagesToSummarize` against `turnPrefixMessages`. Not verified: the package could not be
 * installed, for it needs one that the registry has not. The frame of the summary is ours. Lost on the way: images;
 * usage, model and time of messages are made up. An extension that imports pi's packages needs them beside it.
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { strategy } from "proctor-strategy";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reserve: { type: "string", default: "16384" },
    "keep-recent": { type: "string", default: "20000" },
    "max-tokens": { type: "string", default: "8192" },
  },
});
const settings = { enabled: true, reserveTokens: Number(values.reserve), keepRecentTokens: Number(values["keep-recent"]) };
const maxTokens = Number(values["max-tokens"]);
const EVENT = "session_before_compact";
const FRAME = "Summary of the conversation before this:\n\n";

async function load(file) {
  const handlers = [];
  const on = (event, handler) => (event === EVENT && handlers.push(handler), () => {});
  const pi = new Proxy({ on }, { get: (known, key) => known[key] ?? (() => undefined) });
  await (await import(pathToFileURL(resolve(file)).href)).default(pi);
  if (!handlers.length) throw new Error(`${file} has no handler of ${EVENT}`);
  return handlers;
}
const loading = load(positionals[0] ?? "extension.mjs");
loading.catch(() => {}); // Told at the first call, where Proctor can show it.

const blocksOf = ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
const isResult = (message) => blocksOf(message).some((block) => block.type === "tool_result");
const isPrompt = (message) => message.role === "user" && !isResult(message);
const textOf = (content) => (typeof content === "string" ? content : (content ?? []).map((one) => one.text ?? "").join("\n"));

/** pi's messages for one of ours. */
function toPi(message, names) {
  const said = { user: [], assistant: [] };
  const results = [];
  for (const block of blocksOf(message)) {
    if (block.type === "tool_use") {
      names.set(block.id, block);
      said.assistant.push({ type: "toolCall", id: block.id, name: block.name, arguments: block.input });
    } else if (block.type === "tool_result") {
      results.push({ role: "toolResult", toolCallId: block.tool_use_id, toolName: names.get(block.tool_use_id)?.name ?? "",
        content: [{ type: "text", text: textOf(block.content) }], isError: block.is_error ?? false, timestamp: 0 });
    } else if (block.type === "thinking") {
      said.assistant.push({ type: "thinking", thinking: block.thinking });
    } else {
      said[message.role].push({ type: "text", text: block.text ?? "[image]" });
    }
  }
  const made = { api: "", provider: "proctor", model: "proctor", usage: {}, stopReason: "stop", timestamp: 0 };
  if (said.assistant.length) return [{ role: "assistant", content: said.assistant, ...made }];
  return said.user.length ? [...results, { role: "user", content: said.user, timestamp: 0 }] : results;
}

/** The first message that stays: no result of a tool. */
function cutOf(messages, budget) {
  let at = messages.length;
  for (let kept = 0; at > 0 && kept < settings.keepRecentTokens; at -= 1) kept += budget.size(messages[at - 1]);
  while (at < messages.length && isResult(messages[at])) at += 1;
  return at;
}

strategy(async (messages, budget, ask) => {
  const handlers = await loading;
  if (!budget.overflow && budget.used <= budget.window - settings.reserveTokens) return messages;
  const at = cutOf(messages, budget);
  if (at === 0) return messages;
  const previous = messages[0].role === "user" && textOf(messages[0].content).startsWith(FRAME);
  const names = new Map();
  const entries = messages.map((message, place) => toPi(message, names).map((one, step) => (
    { type: "message", id: `${place}.${step}`, parentId: null, timestamp: "1970-01-01T00:00:00Z", message: one })));
  // A cut inside of a turn: the turn's beginning is told apart.
  let turn = at;
  while (turn > 0 && turn < messages.length && !isPrompt(messages[turn])) turn -= 1;
  const said = (from, to) => entries.slice(from, to).flat().map((entry) => entry.message);
  const from = previous ? 1 : 0;
  const preparation = {
    firstKeptEntryId: entries[at]?.[0].id ?? "none",
    messagesToSummarize: said(from, Math.max(turn, from)),
    turnPrefixMessages: said(Math.max(turn, from), at),
    isSplitTurn: turn < at,
    tokensBefore: budget.used,
    previousSummary: previous ? textOf(messages[0].content).slice(FRAME.length) : undefined,
    fileOps: { read: new Set(), written: new Set(), edited: new Set() },
    settings,
  };
  for (const { name, input } of names.values()) {
    const kind = /read/i.test(name) ? "read" : /write/i.test(name) ? "written" : /edit/i.test(name) ? "edited" : undefined;
    if (kind && typeof input?.path === "string") preparation.fileOps[kind].add(input.path);
  }
  const complete = async (model, context) => {
    const asked = context.messages.map(({ role, content }) => ({ role, content: textOf(content) }));
    const text = await ask(asked, { system: context.systemPrompt, maxTokens });
    return { role: "assistant", content: [{ type: "text", text }], usage: {}, stopReason: "stop" };
  };
  const model = { id: "proctor", provider: "proctor", contextWindow: budget.window, maxTokens };
  const ctx = { cwd: process.cwd(), hasUI: false, model, ui: new Proxy({}, { get: () => () => undefined }),
    modelRegistry: { find: () => model, complete, getApiKey: async () => "none", getApiKeyAndHeaders: async () => ({ ok: true }) } };
  const event = { type: EVENT, preparation, branchEntries: entries.flat(), reason: budget.overflow ? "overflow" : "threshold",
    willRetry: budget.overflow, signal: new AbortController().signal };
  let result;
  for (const handler of handlers) result = (await handler(event, ctx)) ?? result;
  if (result?.cancel) return messages;
  const summary = result?.compaction?.summary ?? (await ask([...messages.slice(0, at), {
    role: "user", content: "Summarise the conversation so far: goal, constraints, what is done, what is open, next steps." }],
    { maxTokens }));
  const kept = entries.findIndex((group) => group.some((entry) => entry.id === result?.compaction?.firstKeptEntryId));
  const first = result?.compaction ? (kept < 0 ? messages.length : kept) : at;
  return [{ role: "user", content: FRAME + summary }, ...messages.slice(first)];
}, { name: "pi_before_compact" });
