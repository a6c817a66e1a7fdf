/**
 * A plugin of opencode that hooks into compaction, as a strategy.
 *
 * Product   opencode 1.18.33 (types of npm's @opencode-ai/plugin). No library: the plugin is called as opencode does,
 *           what surrounds it is a stand-in
 * Run       proctor run sessions/ --strategy-cmd 'node opencode_hook.mjs my-plugin.mjs'
 *
 * --buffer       tokens that stay free: over the usable window less these it compacts (20000)
 * --tail-tokens  tokens at the end that stay, from a message of the user on where there is one (8000)
 * --max-tokens   the longest summary that is asked for (4000)
 * --options      JSON that the plugin gets as its second argument
 *
 * Every function that the file exports is called as a plugin, or `server` of a default export that has it. Its hook
 * `experimental.session.compacting` gets `{sessionID}` and `{context: [], prompt: undefined}`: what it pushes to
 * `context` is added to the request for the summary, a `prompt` replaces it. So it is where a prompt was refused.
 * Verified against the package's types: the name of the hook and both arguments, that `prompt` replaces, and a plugin's
 * arguments. Not verified, for there is no library: the wording of the request (ours is plain) and the exact cut. What a
 * plugin asks of `client` or `$` is not there and throws. Hooks that change single messages are not called.
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { strategy } from "proctor-strategy";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    buffer: { type: "string", default: "20000" },
    "tail-tokens": { type: "string", default: "8000" },
    "max-tokens": { type: "string", default: "4000" },
    options: { type: "string", default: "{}" },
  },
});
const HOOK = "experimental.session.compacting";
const REQUEST = `Summarise the conversation so far for the agent that goes on with it: the objective, what was asked for \
word for word where it matters, decisions, what is done, what is open, the next step, and the files that matter.`;

/** Says which thing a plugin wanted that is not there. */
const absent = (name) =>
  new Proxy(() => {}, {
    get: (_, key) => (typeof key === "symbol" || key === "then" ? undefined : absent(`${name}.${key}`)),
    apply: () => {
      throw new Error(`${name} is not there under Proctor`);
    },
  });

async function load(file) {
  const module = await import(pathToFileURL(resolve(file)).href);
  const made = module.default?.server ? [module.default.server] : new Set(Object.values(module));
  const directory = process.cwd();
  const input = { client: absent("client"), $: absent("$"), project: { id: "proctor", worktree: directory }, directory,
    worktree: directory, serverUrl: new URL("http://localhost:4096"), experimental_workspace: { register() {} } };
  const hooks = [];
  for (const plugin of made) {
    if (typeof plugin === "function") hooks.push(await plugin(input, JSON.parse(options.options)));
  }
  if (!hooks.some((one) => one?.[HOOK])) throw new Error(`${file} has no hook ${HOOK}`);
  return hooks.map((one) => one?.[HOOK]).filter(Boolean);
}

const isPrompt = ({ role, content }) =>
  role === "user" && (typeof content === "string" || !content.some((block) => block.type === "tool_result"));
const isResult = ({ role, content }) => role === "user" && !isPrompt({ role, content });

/** The first message that stays: back by tokens, then on to a message of the user, else off a result. */
function cut(messages, budget) {
  let at = messages.length;
  for (let room = Number(options["tail-tokens"]); at > 0; at -= 1) {
    room -= budget.size(messages[at - 1]);
    if (room < 0) break;
  }
  const prompt = messages.findIndex((message, place) => place >= at && isPrompt(message));
  if (prompt >= 0) return prompt;
  while (at < messages.length && isResult(messages[at])) at += 1;
  return at;
}

const hooks = load(positionals[0] ?? "plugin.mjs");
hooks.catch(() => {}); // Told at the first call, where Proctor can show it.

strategy(async (messages, budget, ask) => {
  const usable = Math.max(budget.effective - Number(options.buffer), budget.effective / 2);
  if (!budget.overflow && budget.used < usable) return messages;
  const output = { context: [], prompt: undefined };
  for (const hook of await hooks) await hook({ sessionID: "proctor" }, output);
  const request = output.prompt ?? [REQUEST, ...output.context].join("\n\n");
  const at = cut(messages, budget);
  if (at === 0) return messages;
  const summary = await ask([...messages.slice(0, at), { role: "user", content: request }], {
    maxTokens: Number(options["max-tokens"]),
  });
  return [{ role: "user", content: `Summary of the conversation so far:\n\n${summary}` }, ...messages.slice(at)];
}, { name: "opencode_hook" });
