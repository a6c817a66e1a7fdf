import type { Compact, Options, Strategy } from "./proctor_strategy.js";
/** A function, an object of moments, a command as a list of words, or the name of a preset; `full` compacts nothing. */
export type Subject = Compact | Strategy | readonly string[] | string;
/** Options of the function, and of the tests. */
export type TestOptions = Options & {
    /** Laws that should hold fail as well, instead of warning. */
    strict?: boolean;
    /** Seconds for all laws together, 300 by default: those that are not judged by then fail. */
    maxSeconds?: number;
    /** The program `proctor`; by default that of the package, else the one of `PATH`. */
    program?: string;
};
/** The context of a test, in vitest and in Node's runner. */
export type TestContext = {
    skip: (reason?: string) => unknown;
};
/** The outcome of a law, as `proctor check --results` writes it. */
export type LawOutcome = {
    law: string;
    level: "must" | "should";
    expected: string;
    state: "held" | "broken" | "no_chance" | "not_asked" | "declared" | "not_tried" | "out_of_time";
    reason: string | null;
    finding: {
        got: string;
        scene: string;
        window: number;
        lines: string[];
    } | null;
};
/** The names of the laws of `proctor check`. */
export declare function laws(program?: string): string[];
/** What to say of a compaction: each subject is checked once in a process. */
export declare function expectCompaction(subject: Subject, options?: TestOptions): CompactionExpectation;
/** A compaction, with what is known of it. */
export declare class CompactionExpectation {
    #private;
    constructor(subject: Subject, options: TestOptions);
    /** The outcome of each law. */
    laws(): Promise<Map<string, LawOutcome>>;
    /** Rejects with the smallest session that breaks this law. A law that could not be judged skips the test. */
    toKeep(law: string, context: TestContext): Promise<void>;
    /** Rejects with every law that is broken, or that was not judged in time. */
    toKeepAllLaws(): Promise<void>;
    /** Dollars for all these sessions together: recordings, folders of them, or the built-in quick start. */
    bill(...sessions: string[]): Promise<number>;
    /** The share of facts that are still in the prompt, unchanged, when they are asked for: 0 to 1. */
    facts(...sessions: string[]): Promise<number>;
    /** The share of details of later tool calls that their prompt still held: 0 to 1. */
    actions(...sessions: string[]): Promise<number>;
    /** Any metric of `proctor run -o report.json`. */
    number(metric: string, ...sessions: string[]): Promise<number>;
}
