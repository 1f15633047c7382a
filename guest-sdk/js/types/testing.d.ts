// The types of `@deedbox/guest/testing`.

import { Context } from "./context.js";
import type { Activity, Bytes, FileError, HttpError, MessageError, OnUnknown } from "./index.js";

/** How an effect was told apart. */
export type Identity =
  { tag: "positional" } | { tag: "named"; val: string } | { tag: "business"; val: { operation: string; key: string } };

/** What the next request gets. Each change gives a new one. */
export declare class Answer {
  private constructor();
  /** An answer with this status and an empty body, sent now. */
  static status(status: number): Answer;
  /** Status 200 with this JSON. */
  static json(body: unknown): Answer;
  /** No answer but this error of the host. */
  static error(
    code: Exclude<HttpError["code"], "body-not-kept" | "unexpected-body" | "http-status">,
    text?: string,
  ): Answer;
  withJson(body: unknown): Answer;
  withBody(body: Bytes): Answer;
  withHeader(name: string, value: string): Answer;
  /** As from the record of an earlier send. */
  replayed(): Answer;
  /** As from a record without its body. */
  withoutBody(): Answer;
}

/** One request, as the host would have got it. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, Uint8Array])[];
  readonly body: Uint8Array;
  readonly timeoutMs: number | undefined;
  readonly identity: Identity;
  readonly onUnknown: OnUnknown;
  header(name: string): string | undefined;
  /** The body as JSON; null when it is none. */
  json(): any;
}

/** One message, as the host would have got it. */
export interface SentMessage {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly headers: readonly (readonly [string, string])[];
  readonly identity: Identity;
  readonly onUnknown: OnUnknown;
  json(): any;
}

/** One write, as the host would have got it. */
export interface WrittenFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly identity: Identity;
  text(): string;
}

/** A context for a unit test. Each request needs an answer in the script; one without throws and names the request. */
export declare class FakeContext extends Context {
  private constructor();
  /** The first of three attempts of the run with this id, a UUID that the test writes down. Throws when it is none. */
  static forRun(runId: string): FakeContext;
  /** Adds the answer to the next request that has none yet. */
  answer(answer: Answer): void;
  sent(): Sent[];
  sentMessages(): SentMessage[];
  refuseMessage(code: MessageError["code"], text?: string): void;
  writtenFiles(): WrittenFile[];
  refuseWrite(code: FileError["code"], text?: string): void;
  /** Delivers a signal to the run. */
  deliver(name: string, payload?: unknown): void;
  /** Makes this the attempt of that number, with the saved state of the attempts before, and their signals. */
  setAttempt(attempt: number): void;
  setMaxAttempts(attempts: number): void;
  setActivity(name: string): void;
  setRemaining(milliseconds: number): void;
  /** Asks the attempt to stop. */
  cancel(): void;
  /** Runs an activity on a JSON text, as the host does, and gives its output as JSON text. */
  runJson<R>(activity: Activity<any, R>, input: string): R extends Promise<unknown> ? Promise<string> : string;
}
