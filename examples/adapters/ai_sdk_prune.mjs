/**
 * `pruneMessages` of the AI SDK as a strategy.
 *
 * Library   npm `ai` 7.0.173, `pruneMessages`; Node 22 or later
 * Run       proctor run sessions/ --strategy-cmd 'node ai_sdk_prune.mjs --tool-calls before-last-10-messages'
 *
 * --tool-calls   `none`, `all`, `before-last-message`, `before-last-N-messages` (before-last-message)
 * --tools        only calls of these tools, by comma (all)
 * --reasoning    `none`, `all`, `before-last-message` (none)
 * --empty        messages that are left without content: `keep` or `remove` (remove)
 * --apart        several results are a message each; otherwise one for all of one step, as the AI SDK makes them. What
 *                `N` counts depends on it
 *
 * The function keeps no state, so it gets the whole history at every call. It drops calls and results altogether and
 * puts nothing in their place. What it leaves is mapped back to the blocks that were given, so nothing is lost but the
 * order of results and texts in a message of the user of which a part goes.
 */
import { parseArgs } from "node:util";
import { pruneMessages } from "ai";
import { strategy } from "proctor-strategy";

const { values: options } = parseArgs({
  options: {
    "tool-calls": { type: "string", default: "before-last-message" },
    tools: { type: "string" },
    reasoning: { type: "string", default: "none" },
    empty: { type: "string", default: "remove" },
    apart: { type: "boolean", default: false },
  },
});
const type = options["tool-calls"];
const toolCalls = options.tools && type !== "none" ? [{ type, tools: options.tools.split(",") }] : type;

/** Blocks of a message, without the empty texts that some recordings have beside a call: the AI SDK makes none. */
const blocksOf = ({ content }) =>
  (typeof content === "string" ? [{ type: "text", text: content }] : content).filter(
    (block, _, { length }) => length === 1 || block.type !== "text" || block.text.trim(),
  );
const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("\n");

/** The messages of the AI SDK for one of ours; `origin` remembers which part is which block. */
function toSdk(message, place, names, origin) {
  const parts = { assistant: [], tool: [], user: [] };
  for (const block of blocksOf(message)) {
    const [role, part] = partOf(block, message.role, names);
    origin.set(part, { place, block });
    parts[role].push(part);
  }
  const results = options.apart ? parts.tool.map((part) => [part]) : [parts.tool];
  return [
    ...results.map((content) => ({ role: "tool", content })),
    { role: "assistant", content: parts.assistant },
    { role: "user", content: parts.user },
  ].filter(({ content }) => content.length > 0);
}

function partOf(block, role, names) {
  switch (block.type) {
    case "tool_use":
      names.set(block.id, block.name);
      return ["assistant", { type: "tool-call", toolCallId: block.id, toolName: block.name, input: block.input }];
    case "tool_result": {
      const output = { type: block.is_error ? "error-text" : "text", value: textOf(block.content) };
      const toolName = names.get(block.tool_use_id) ?? "";
      return ["tool", { type: "tool-result", toolCallId: block.tool_use_id, toolName, output }];
    }
    case "thinking":
      return ["assistant", { type: "reasoning", text: block.thinking }];
    default:
      return [role, { type: "text", text: block.text ?? "[image]" }];
  }
}

/** Ours again: a part is the block that it was made of. A message of which blocks went is shortened in place. */
function fromSdk(pruned, messages, origin) {
  const made = [];
  for (const { content } of pruned) {
    for (const part of content) {
      const { place, block } = origin.get(part);
      if (made.at(-1)?.place !== place) made.push({ place, blocks: [] });
      made.at(-1).blocks.push(block);
    }
  }
  return made.map(({ place, blocks }) => {
    if (blocks.length < blocksOf(messages[place]).length) messages[place].content = blocks;
    return messages[place];
  });
}

strategy((messages) => {
  const names = new Map();
  const origin = new Map();
  const given = messages.flatMap((message, place) => toSdk(message, place, names, origin));
  const pruned = pruneMessages({ messages: given, toolCalls, reasoning: options.reasoning, emptyMessages: options.empty });
  return fromSdk(pruned, messages, origin);
}, { name: "ai_sdk_prune", history: "full", kind: "clear" });
