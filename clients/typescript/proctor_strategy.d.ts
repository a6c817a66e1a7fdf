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
declare const MOMENTS: readonly ["append", "before_call", "overflow", "after_call"];
export type Moment = (typeof MOMENTS)[number];
/** A message of Anthropic's messages API, or with `shape: "openai"` one of OpenAI's chat API. */
export type Message = {
    role: string;
    content?: any;
    [key: string]: any;
};
export type Result = readonly Message[] | Edits | Summary | null | undefined | void;
export type Shortened = Message | null | undefined | void;
export type Compact = (messages: Message[], budget: Budget, ask: Ask) => Result | Promise<Result>;
/** `stop` is `end`, `max_tokens`, `tool_use` or `refusal`. */
export type Reply = {
    text: string;
    stop: string;
};
export type AskOptions = {
    system?: string;
    maxTokens?: number;
    model?: string;
    withPrefix?: boolean;
};
export type Options = {
    /** `kept`: each call builds on what was returned last. `full`: each call gets the whole original history. */
    history?: "kept" | "full";
    /** Messages as Anthropic's messages API has them, or as OpenAI's chat API does, without the system prompt. */
    shape?: "anthropic" | "openai";
    name?: string;
    /** How it makes a context smaller. Laws for other kinds are not asked. */
    kind?: "window" | "clear" | "summarise" | "other";
    /** Laws that it breaks on purpose: `["never_larger"]`, or with the reasons: `{ never_larger: "it adds a plan" }`. */
    breaks?: readonly string[] | Record<string, string>;
};
/**
 * The text of the answer, or an `AskFailed`; `full` gives text and stop, whatever they are. `model` is `fast`, or a name
 * that price files know; with `withPrefix` the agent's system prompt and tools come first.
 */
export interface Ask {
    (what: string | readonly Message[], options?: AskOptions): Promise<string>;
    full(what: string | readonly Message[], options?: AskOptions): Promise<Reply>;
}
/**
 * A strategy with state. It takes the moments that it has a method for. `append` returns the shortened message or
 * nothing, the others what a function returns. Between sessions nothing is kept: `start` is the place to forget.
 */
export interface Strategy extends Options {
    start?(session: Session): void | Promise<void>;
    append?(message: Message, budget: Budget): Shortened | Promise<Shortened>;
    beforeCall?: Compact;
    overflow?: Compact;
    afterCall?: Compact;
}
/**
 * A model gave no text. `kind` is `too_long`, `timeout`, `rate_limited`, `server`, `failed`, `refusal`, `tool_use`, or
 * `empty`.
 */
export declare class AskFailed extends Error {
    kind: string;
    constructor(kind: string);
}
/** Ranges that make way for messages: `new Edits([[2, 9, [message]]])`. Ascending and disjoint; ends are exclusive. */
export declare class Edits {
    edits: readonly [number, number, readonly Message[]][];
    reason?: string;
    constructor(edits: readonly [number, number, readonly Message[]][], reason?: string);
}
/** One message of the user in place of the messages from `from` up to `to`. */
export declare class Summary {
    from: number;
    to: number;
    text: string;
    reason?: string;
    constructor(from: number, to: number, text: string, reason?: string);
}
/** What is the same at every call. `window` and `effective` are tokens, `seed` is for random draws. */
export declare class Session {
    system: string | null;
    tools: any[];
    window: number;
    effective: number;
    seed: number;
    constructor(line: any);
}
/**
 * The present: how large the prompt is, and how large it may be. All sizes are tokens.
 *
 * `used` is the prompt as it would be sent now, `fixed` the part of it that is system prompt and tools, `tokens` the
 * messages that fit into the effective window. `moment` is the name of what happens, `overflow` whether the provider
 * has just refused the prompt. A `reason` that is set here goes into the log.
 */
export declare class Budget extends Session {
    #private;
    moment: Moment;
    call: number;
    used: number;
    fixed: number;
    tokens: number;
    seconds: number | null;
    overflow: boolean;
    attempt: number;
    reason?: string;
    constructor(line: any, session: Session, view: View);
    /** Tokens as counted by Proctor for messages that were given, a quarter of the characters for new ones. */
    size(what: string | Message | readonly Message[]): number;
}
/** Makes a program of a function. */
export declare function strategy<F extends Compact>(compact: F, options?: Options & {
    moments?: Moment[];
    meta?: {
        url: string;
    };
}): F;
/** Speaks with Proctor until it hangs up. What anything else writes goes to standard error. */
export declare function run(program: Strategy): Promise<void>;
/** The same on any source of bytes. */
export declare function serve(program: Strategy, source: AsyncIterable<Uint8Array>, write: (line: string) => void): Promise<void>;
/** The text of a message, a block or a list of blocks, as Proctor counts it. */
export declare function textOf(what: any): string;
/**
 * The nearest place at `at` or before it where a cut parts no tool result from its call. A negative place counts from
 * the end. Providers refuse a result without its call.
 */
export declare function safeCut(messages: readonly Message[], at: number): number;
type Piece = [number, number] | {
    role: string;
    content: any;
    of?: number;
};
/**
 * The list that Proctor sent last, and what the program was shown of it.
 *
 * A message is shown as one or, in OpenAI's shape, as several. `kept` are the shown ones as they were: what differs was
 * changed by the program. `facts` are the tokens of each, and the blocks that it shows; `homes` says which of Proctor's
 * messages it shows.
 */
declare class View {
    shape: string;
    homes: number[];
    shown: Message[];
    kept: Message[];
    facts: {
        tokens: number;
        blocks: any;
    }[];
    /** By identity, and by the names of calls. May be stale. */
    places: Map<unknown, number>;
    /** The kept ones by content, but for `fresh`. */
    index: Map<string, Message>;
    fresh: Message[];
    constructor(shape: string);
    /** The number of Proctor's messages. */
    size(): number;
    /** Takes over the next list: messages, and ranges of the last list. */
    update(items: any[]): void;
    /** The places that the program changed. */
    changed(): Set<number>;
    /** What was changed is shown as it was from now on: Proctor sends the changed version, if it stays. */
    mend(changed: Iterable<number>): void;
    /** The place of this very object, changed or not. */
    own(message: Message): number | undefined;
    /** The place of a message that says this; the expected one if it does. */
    find(message: Message, expected?: number): number | undefined;
    /** The line that says this result. */
    answer(result: any): object;
    /** The nearest place at `end` or before it where one of Proctor's messages begins. */
    whole(end: number): number;
    /** A place among the shown messages as one among Proctor's. */
    border(at: number): number;
    /** Ranges of what was sent, and messages that are new; changed ones say what they are a version of. */
    pieces(messages: readonly Message[], changed: Set<number>, withOf?: boolean): Piece[];
    /** How far the shown messages from `begin` on are those of the answer from `at` on, in whole messages. */
    stretch(messages: readonly Message[], at: number, begin: number, taken: Set<number>): number;
    /** The place of a message with the same tool calls or result. */
    version(message: Message): number | undefined;
}
export {};
