// What an activity is handed.

import type { Shape, TypeOf } from "./schema.js";

/** The run that an activity serves. */
export declare class Context {
  /** The run key, a UUID: the same in every attempt of this run, and in no other run. */
  idempotencyKey(): string;
  /**
   * A key for one of several effects of this run, a UUID. The same name always gives the same key, another name another
   * key. Throws `invalid-name` when the name is empty or longer than 256 bytes.
   */
  subkey(name: string): string;
  /** What is known about the run. The host is asked each time. */
  run(): Run;
  /** True once this attempt was asked to stop. Return soon: the host stops it otherwise. */
  cancelled(): boolean;
  /** HTTP through the ledger. */
  readonly http: Http;
  /** Messages through the ledger. */
  readonly messages: Messages;
  /** Files through the ledger. */
  readonly files: Files;
  /** Messages to this run. */
  readonly signals: Signals;
  /** The note from one attempt to the next. */
  readonly checkpoint: Checkpoint;
}

/** What is known about a run. */
export interface Run {
  /** The tenant that owns the run. */
  readonly tenant: string;
  /** The stable id of the run, a UUID: the same in every attempt. */
  readonly runId: string;
  /** The name under which the activity was deployed. */
  readonly activity: string;
  /**
   * 1 for the first attempt. **For logging only: a key built from it differs on every attempt, and the effect would
   * happen again.** Use `Context.subkey` for keys.
   */
  readonly attempt: number;
  /** How many attempts the retry policy allows, the first included. */
  readonly maxAttempts: number;
  /** The time left before this attempt is stopped. */
  readonly remainingMs: number;
}

/** Where an answer comes from: this send, the record of an earlier one, a look-up, or a person or system. */
export type Source = "sent" | "replayed" | "looked-up" | "supplied";
export type OnUnknown = "provider-default" | "ask" | "at-most-once" | "at-least-once";
export type Bytes = string | Uint8Array | ArrayBuffer;
export type Headers =
  | Record<string, string | Uint8Array | readonly (string | Uint8Array)[]>
  | readonly (readonly [string, string | Uint8Array])[];

/** How an effect is told apart from all others; by its place when neither is said. */
export interface Named {
  /** A name that is unique in this run, 1 to 256 bytes. A named effect may move within the code between attempts. */
  effect?: string | undefined;
  /** The business itself: two runs that name the same operation and key share one effect. */
  business?: { operation: string; key: string } | undefined;
}

export interface Unsure {
  /** What to do when nobody knows whether the effect happened and sending again is not safe. */
  onUnknown?: OnUnknown | undefined;
}

export interface HttpOptions extends Named, Unsure {
  /** How the host asks the provider whether this effect happened, when nobody knows. */
  lookup?: Lookup | undefined;
  /** The host refuses `host`, hop-by-hop and framing headers. */
  headers?: Headers | undefined;
  /** The body as JSON, with its content type unless `headers` has one. */
  json?: unknown;
  /** The body as an HTML form, with its content type unless `headers` has one. */
  form?:
    Record<string, string | number | boolean> | readonly (readonly [string, string | number | boolean])[] | undefined;
  body?: Bytes | undefined;
  /** How long to wait for the whole answer. The host caps it by the time left for the attempt. */
  timeoutMs?: number | undefined;
}

/** A GET that tells whether an effect happened. When neither condition is true, it cannot tell. */
export interface Lookup {
  url: string;
  headers?: Headers | undefined;
  found: Condition;
  absent: Condition;
  /** How long after the send `absent` may still be wrong. */
  settleMs?: number | undefined;
}

/** Recognises an answer of a look-up. */
export interface Condition {
  statuses: number[];
  /** RFC 6901; `*` stands for every element. Without `equals`: there is something, and it is not null. */
  pointer?: string | undefined;
  /** The value there: a string, or the compact text of the value. */
  equals?: string | undefined;
}

/** GET, HEAD and OPTIONS are reads; every other method is an effect. Every status is an answer. */
export interface Http {
  get(url: string | { toString(): string }, options?: HttpOptions): Response;
  post(url: string | { toString(): string }, options?: HttpOptions): Response;
  put(url: string | { toString(): string }, options?: HttpOptions): Response;
  patch(url: string | { toString(): string }, options?: HttpOptions): Response;
  delete(url: string | { toString(): string }, options?: HttpOptions): Response;
  /** Any method, in upper case. */
  request(method: string, url: string | { toString(): string }, options?: HttpOptions): Response;
}

/** An answer with any status. */
export declare class Response {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  get ok(): boolean;
  /** Every header, in the order received. */
  readonly headers: readonly (readonly [string, Uint8Array])[];
  /** The first header of that name, in any case, when its value is text. */
  header(name: string): string | undefined;
  /** The body. Throws `body-not-kept` when the record has none. */
  bytes(): Uint8Array;
  /** The body as UTF-8. */
  text(): string;
  /** The body as JSON, checked: members that the schema does not name are left out. */
  json<S extends Shape<any>>(schema: S): TypeOf<S>;
  /** The body as JSON, unchecked. */
  json(): unknown;
  readonly source: Source;
  /** The effect behind a claimed call; undefined for a read. */
  readonly effectId: string | undefined;
  /** The answer itself unless its status is 400 or higher: then an `HttpError`, retryable for 5xx, 408, 425 and 429. */
  errorForStatus(): this;
}

export interface MessageOptions extends Named, Unsure {
  /** The host refuses those of the server, but for `Nats-Msg-Id` and conditions. */
  headers?: Record<string, string> | readonly (readonly [string, string])[] | undefined;
  /** The payload as JSON, with a content type unless `headers` has one. */
  json?: unknown;
  payload?: Bytes | undefined;
}

export interface Messages {
  /** Publishes a message and waits until the server keeps it, or answers from the ledger. */
  publish(subject: string, options?: MessageOptions): Published;
}

export interface Published {
  /** Where the server keeps the message. */
  readonly stream: string;
  readonly sequence: number;
  /** The server had it already. */
  readonly duplicate: boolean;
  /** The message id on the wire. */
  readonly messageId: string;
  readonly source: Source;
  readonly effectId: string;
}

export interface Files {
  /** Writes a whole file, or answers from the ledger. The first segment of the path names the granted directory. */
  write(path: string, content: Bytes, options?: Named): Written;
  /** Always refused, with the reason: an append that is made twice writes twice. */
  append(path: string, content: Bytes): never;
}

export interface Written {
  readonly source: Source;
  readonly effectId: string;
}

/** Each call gives the same in every attempt. */
export interface Signals {
  /** The oldest unread signal of that name, if one is here. */
  poll(name: string): Signal | undefined;
  /** Waits without end. A long wait ends this attempt without spending a retry. */
  wait(name: string): Signal;
  /** Waits with an end, counted from the first attempt that waits here: undefined when no signal came in time. */
  waitFor(name: string, timeoutMs: number): Signal | undefined;
}

export interface Signal {
  readonly name: string;
  /** A JSON text. */
  readonly payload: string;
  /** Its place among all signals of the run, from 1. */
  readonly sequence: number;
  json<S extends Shape<any>>(schema: S): TypeOf<S>;
  json(): unknown;
}

/** It holds one value: saving replaces it. */
export interface Checkpoint {
  /** Durable once it returns. */
  save(state: unknown): void;
  load<S extends Shape<any>>(schema: S): TypeOf<S> | undefined;
  load(): unknown;
  saveBytes(state: Uint8Array): void;
  loadBytes(): Uint8Array | undefined;
}
