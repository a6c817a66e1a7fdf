// Compaction as an agent would have it: when the window is nearly full, the newest twenty messages stay.
// As a program it is a strategy of `proctor run` and `proctor check`; imported, it is the plain function.
import { safeCut, strategy } from "proctor-bench";

export const compact = strategy(
  (messages, budget) => {
    if (budget.used < 0.8 * budget.window) return messages;
    // Never between a tool call and its result: providers refuse that.
    const start = Math.max(1, safeCut(messages, -20));
    return [messages[0], ...messages.slice(start)];
  },
  { meta: import.meta },
);
