/**
 * Test a compaction function with vitest, or with Node's test runner: its laws, its bill, and the facts that it keeps.
 *
 *     import { test } from "vitest"; // or from "node:test"
 *     import { expectCompaction, laws } from "proctor-bench/testing";
 *     import { compact } from "./mine.js";
 *
 *     for (const law of laws()) test(law, (context) => expectCompaction(compact).toKeep(law, context));
 *
 * The function stays in the process of the test: Proctor is started for it, and asks it over two pipes.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { serve } from "./proctor_strategy.js";
/** Of the program that this file belongs to. */
const VERSION = "0.1.0";
/** The names of the laws of `proctor check`. */
export function laws(program = find()) {
    return execFileSync(program, ["check", "--laws"], { encoding: "utf8" }).split("\n").filter(Boolean);
}
/** What to say of a compaction: each subject is checked once in a process. */
export function expectCompaction(subject, options = {}) {
    const key = JSON.stringify(options);
    const known = made.get(subject) ?? new Map();
    made.set(subject, known);
    const found = known.get(key) ?? new CompactionExpectation(subject, options);
    known.set(key, found);
    return found;
}
const made = new Map();
/** A compaction, with what is known of it. */
export class CompactionExpectation {
    #subject;
    #options;
    #laws;
    #measured = new Map();
    /** There is one program behind a function: it is asked one thing after the other. */
    #last = Promise.resolve();
    constructor(subject, options) {
        const { strict, program, maxSeconds = 300, ...rest } = options;
        this.#options = { strict, program, maxSeconds };
        this.#subject =
            typeof subject === "function"
                ? { name: subject.name || "function", ...rest, beforeCall: subject, overflow: subject }
                : subject;
    }
    /** The outcome of each law. */
    laws() {
        this.#laws ??= this.#inFolder(async (folder) => {
            const results = join(folder, "laws.jsonl");
            const limit = ["--max-seconds", `${this.#options.maxSeconds}`];
            await this.#start(["check", ...limit, "--results", results], [0, 5, 100]);
            const lines = readFileSync(results, "utf8").split("\n").filter(Boolean);
            return new Map(lines.map((line) => JSON.parse(line)).map((law) => [law.law, law]));
        });
        return this.#laws;
    }
    /** Rejects with the smallest session that breaks this law. A law that could not be judged skips the test. */
    async toKeep(law, context) {
        const all = await this.laws();
        const outcome = all.get(law);
        if (!outcome)
            throw new Error(`there is no law \`${law}\`; the laws are ${[...all.keys()].join(", ")}`);
        const why = {
            no_chance: "no session gave it a chance to be broken",
            not_asked: "this law is not for compactions of this kind",
            not_tried: "the compaction did not answer: see the law `answers`",
            declared: `broken on purpose: ${outcome.reason}`,
        };
        const reason = why[outcome.state];
        if (reason)
            return void context.skip(reason);
        this.#judge([outcome]);
    }
    /** Rejects with every law that is broken, or that was not judged in time. */
    async toKeepAllLaws() {
        this.#judge([...(await this.laws()).values()]);
    }
    /** Dollars for all these sessions together: recordings, folders of them, or the built-in quick start. */
    bill(...sessions) {
        return this.number("bill", ...sessions);
    }
    /** The share of facts that are still in the prompt, unchanged, when they are asked for: 0 to 1. */
    facts(...sessions) {
        return this.number("facts", ...sessions);
    }
    /** The share of details of later tool calls that their prompt still held: 0 to 1. */
    actions(...sessions) {
        return this.number("actions", ...sessions);
    }
    /** Any metric of `proctor run -o report.json`. */
    async number(metric, ...sessions) {
        const paths = sessions.map((path) => resolve(path));
        const key = JSON.stringify(paths);
        const measured = this.#measured.get(key) ??
            this.#inFolder(async (folder) => {
                const report = join(folder, "report.json");
                await this.#start(["run", ...paths, "--reports", folder, "-o", report], [0]);
                const { results } = JSON.parse(readFileSync(report, "utf8"));
                const named = Object.keys(results).find((name) => name !== "full" && name !== "empty");
                return this.#subject === "full" || !named ? results.full : results[named];
            });
        this.#measured.set(key, measured);
        const row = await measured;
        const value = row[metric]?.value;
        if (typeof value === "number")
            return value;
        const done = row.completion?.value ?? 1;
        const hint = done < 1
            ? `: with this compaction they end early (completion ${Math.floor(100 * done)} %)`
            : metric === "facts"
                ? ": `proctor sessions facts` derives them from recordings"
                : "";
        throw new Error(`\`${metric}\` is not measured on these sessions${hint}`);
    }
    #judge(outcomes) {
        const broken = outcomes.filter((law) => law.state === "broken");
        const fails = broken.filter((law) => law.level === "must" || this.#options.strict).map(inWords);
        const late = outcomes.filter((law) => law.state === "out_of_time").map((law) => law.law);
        if (late.length)
            fails.push(`not judged within ${this.#options.maxSeconds} s (\`maxSeconds\`): ${late.join(", ")}`);
        if (fails.length)
            throw new Error(fails.join("\n\n"));
        for (const law of broken)
            process.emitWarning(inWords(law), "ProctorWarning");
    }
    async #inFolder(work) {
        const mine = this.#last.then(async () => {
            const folder = mkdtempSync(join(tmpdir(), "proctor-"));
            try {
                return await work(folder);
            }
            finally {
                rmSync(folder, { recursive: true, force: true });
            }
        });
        this.#last = mine.catch(() => { });
        return mine;
    }
    /** Runs Proctor to its end on this subject. */
    async #start(words, mayEndWith) {
        const subject = this.#subject;
        const isServed = typeof subject === "object" && !Array.isArray(subject);
        const how = isServed
            ? words[0] === "check" ? ["--strategy-stdio"] : ["--strategy-cmd", "-"]
            : typeof subject === "string"
                ? ["--strategy", subject === "full" ? "none" : subject]
                : words[0] === "run"
                    ? ["--strategy-cmd", subject.map(quoted).join(" ")]
                    : ["--", ...subject];
        const pipe = isServed ? "pipe" : "ignore";
        const child = spawn(this.#options.program ?? find(), [...words, ...how], {
            stdio: [pipe, pipe, "pipe"],
            // A report is not this test's to put there.
            env: { ...process.env, GITHUB_STEP_SUMMARY: undefined },
        });
        let said = "";
        let wrong;
        child.stderr.on("data", (text) => (said += text));
        const ended = new Promise((done, failed) => {
            child.on("error", failed);
            child.on("close", done);
        });
        if (isServed) {
            child.stdin.on("error", () => { }); // Proctor hung up.
            serve(subject, child.stdout, (line) => void child.stdin.write(line)).catch((error) => {
                wrong ??= error;
                child.kill();
            });
        }
        const status = await ended;
        if (wrong)
            throw wrong;
        if (status === null || !mayEndWith.includes(status)) {
            throw new Error(`\`proctor ${words[0]}\` ended with ${status}: ${reasons(said.trim())}`);
        }
    }
}
/** The first failure of a session, and the errors: without the sessions that went well, or as badly as the first. */
function reasons(said) {
    const lines = said.split("\n");
    const failed = lines.find((line) => line.startsWith("failed: "));
    return failed ? [failed, ...lines.slice(lines.findIndex((line) => line.startsWith("error: ")))].join("\n") : said;
}
/** A broken law, as a person reads it. */
function inWords({ law, expected, finding }) {
    const { got, scene, window, lines } = finding;
    const session = `${scene}, window ${window.toLocaleString("en")} tokens, the smallest that breaks it:`;
    const shown = lines.map((line) => `    ${line}`).join("\n");
    return `\`${law}\` is broken: ${expected}\n  got      ${got}\n  session  ${session}\n${shown}`;
}
function quoted(word) {
    return `'${word.replaceAll("'", `'\\''`)}'`;
}
/** The program of the package for this machine, else the one of `PATH`; of this version. */
function find() {
    if (found)
        return found;
    const file = process.platform === "win32" ? "proctor.exe" : "proctor";
    let program = file;
    try {
        program = createRequire(import.meta.url).resolve(`proctor-bench-${process.platform}-${process.arch}/${file}`);
    }
    catch {
        const folders = (process.env.PATH ?? "").split(process.platform === "win32" ? ";" : ":");
        if (!folders.some((folder) => existsSync(join(folder, file)))) {
            throw new Error("the program `proctor` is not installed: the package `proctor-bench` brings it");
        }
    }
    const version = execFileSync(program, ["--version"], { encoding: "utf8" }).trim().split(" ").pop();
    if (version !== VERSION) {
        throw new Error(`\`${program}\` is ${version}, and this helper belongs to ${VERSION}: install both of one version`);
    }
    return (found = program);
}
let found;
