// Compaction as an agent would have it: when the window is nearly full, the newest twenty messages stay.
import { safeCut } from "proctor-bench";

export function compact(messages, budget) {
  if (budget.used < 0.8 * budget.window) return messages;
  // Never between a tool call and its result: providers refuse that.
  const start = Math.max(1, safeCut(messages, -20));
  return [messages[0], ...messages.slice(start)];
}
