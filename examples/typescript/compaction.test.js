// Run with `npm test`, or `node --test`, where the package `proctor-bench` is installed.
import { expectCompaction, laws } from "proctor-bench/testing";

const { test } = await import(process.env.VITEST ? "vitest" : "node:test");
const { compact } = await import(/* @vite-ignore */ `./${process.env.COMPACTION ?? "compaction"}.js`);

const options = { timeout: 60_000 };

for (const law of laws()) test(law, options, (context) => expectCompaction(compact).toKeep(law, context));

test("costs no more than doing nothing", options, async () => {
  const [bill, full] = [await expectCompaction(compact).bill(), await expectCompaction("full").bill()];
  if (bill > 1.02 * full) throw new Error(`${bill} dollars, and ${full} for doing nothing`);
});
