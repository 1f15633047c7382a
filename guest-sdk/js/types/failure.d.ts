// How an activity says that this attempt did not succeed, and whether another one may.

export type FailureKind = "retryable" | "permanent";

export interface FailureOptions {
  /** The earliest time for the next attempt, in milliseconds from now. The host caps it. */
  retryAfterMs?: number | undefined;
  /** Something for programs to read, as JSON. */
  details?: unknown;
  cause?: unknown;
}

/** The end of an attempt without a value. Every error that this package throws is one. */
export declare class Failure extends Error {
  constructor(kind: FailureKind, code: string, message: string, options?: FailureOptions);
  /** Another attempt may succeed; the retry policy decides whether there is one. */
  static retryable(code: string, message: string, options?: FailureOptions): Failure;
  /** No further attempt is made. */
  static permanent(code: string, message: string, options?: FailureOptions): Failure;
  readonly kind: FailureKind;
  /** A stable word for programs, 1 to 128 characters. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;
  readonly details: unknown;
  get isRetryable(): boolean;
}

type CallCode =
  | "denied"
  | "effect-mismatch"
  | "in-flight"
  | "outcome-unknown"
  | "unreachable"
  | "timed-out"
  | "invalid-request"
  | "connection-lost";

/** Why there is no usable answer. */
export declare class HttpError extends Failure {
  readonly code: CallCode | "response-too-large" | "body-not-kept" | "unexpected-body" | "http-status";
  /** With `http-status`. */
  readonly status?: number;
}

/** Why there is no acknowledgement. */
export declare class MessageError extends Failure {
  readonly code: CallCode | "message-refused";
}

/** Why a file was not written. */
export declare class FileError extends Failure {
  readonly code: "denied" | "effect-mismatch" | "in-flight" | "invalid-request" | "write-failed";
}

/** Why a signal was not given or not read. */
export declare class SignalError extends Failure {
  readonly code: "signal-invalid-name" | "signal-too-many-calls" | "signal-missing" | "signal-format";
}

/** Why a state was not saved or not read. */
export declare class CheckpointError extends Failure {
  readonly code: "checkpoint-too-large" | "checkpoint-format";
}

/** Why a subkey was refused. */
export declare class KeyError extends Failure {
  readonly code: "invalid-name";
}
