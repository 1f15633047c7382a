// How an activity says that this attempt did not succeed, and whether another one may.
//
// A business rejection is no failure: return it as a value. A failure must never carry a secret, for it is recorded and
// shown.

/** The end of an attempt without a value. Every error that this package throws is one. */
export class Failure extends Error {
  constructor(kind, code, message, options = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.kind = kind;
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
  }

  static retryable(code, message, options) {
    return new Failure("retryable", code, message, options);
  }

  static permanent(code, message, options) {
    return new Failure("permanent", code, message, options);
  }

  get isRetryable() {
    return this.kind === "retryable";
  }
}

const kindOf = (retryable) => (retryable ? "retryable" : "permanent");

/** Why there is no usable answer. */
export class HttpError extends Failure {
  /** `text` is what the host says about it, where it says something. */
  constructor(code, text, options) {
    super(kindOf(HTTP_RETRYABLE.has(code)), code, inWords(HTTP_WORDS, code, text), options);
  }

  static ofStatus(status) {
    const error = new HttpError("http-status", status, { details: { status } });
    error.status = status;
    error.kind = kindOf(status >= 500 || STATUS_RETRYABLE.has(status));
    return error;
  }
}

/** Why there is no acknowledgement. A server refuses for a while when a stream is full. */
export class MessageError extends Failure {
  constructor(code, text, options) {
    super(kindOf(MESSAGE_RETRYABLE.has(code)), code, inWords(MESSAGE_WORDS, code, text), options);
  }
}

/** Why a file was not written. */
export class FileError extends Failure {
  constructor(code, text, options) {
    super(kindOf(FILE_RETRYABLE.has(code)), code, inWords(FILE_WORDS, code, text), options);
  }
}

/** Why a signal was not given or not read. */
export class SignalError extends Failure {
  constructor(code, text, options) {
    super("permanent", code, inWords(SIGNAL_WORDS, code, text), options);
  }
}

/** Why a state was not saved or not read. */
export class CheckpointError extends Failure {
  constructor(code, text, options) {
    super("permanent", code, inWords(CHECKPOINT_WORDS, code, text), options);
  }
}

/** Why a subkey was refused. */
export class KeyError extends Failure {
  constructor(options) {
    const words = "the name of a subkey has 1 to 256 bytes of UTF-8: choose another name";
    super("permanent", "invalid-name", words, options);
  }
}

const STATUS_RETRYABLE = new Set([408, 425, 429]);
const HTTP_RETRYABLE = new Set(["in-flight", "unreachable", "timed-out", "connection-lost"]);
const MESSAGE_RETRYABLE = new Set([...HTTP_RETRYABLE, "message-refused"]);
const FILE_RETRYABLE = new Set(["in-flight", "write-failed"]);

const HELD = "another attempt or run holds this effect right now: try again later";

const HTTP_WORDS = {
  "denied": (text) => `the deployment does not allow this call: ${text}`,
  "effect-mismatch": (text) => text,
  "in-flight": () => HELD,
  "outcome-unknown": (text) =>
    `nobody knows whether this effect happened, and policy forbids sending it again: ${text}`,
  "unreachable": (text) => `the provider could not be reached: ${text}`,
  "timed-out": () => "no whole answer came in time",
  "response-too-large": (limit) => `the answer is larger than the host's limit of ${limit} bytes`,
  "invalid-request": (text) => `the request cannot be sent as it stands: ${text}`,
  "connection-lost": (text) => `the connection broke after the request was sent: ${text}`,
  "body-not-kept": () => "the recorded answer has no body, because it was larger than the host keeps",
  "unexpected-body": (text) => `the answer cannot be read as asked: ${text}`,
  "http-status": (status) => `the provider answered with status ${status}`,
};

const MESSAGE_WORDS = {
  "denied": (text) => `the deployment does not allow this message: ${text}`,
  "effect-mismatch": (text) => text,
  "in-flight": () => HELD,
  "outcome-unknown": (text) =>
    `nobody knows whether this message was published, and policy forbids sending it again: ${text}`,
  "unreachable": (text) => `the server could not be reached: ${text}`,
  "timed-out": () => "no acknowledgement came in time",
  "invalid-request": (text) => `the message cannot be sent as it stands: ${text}`,
  "message-refused": (text) => `the server refused the message: ${text}`,
  "connection-lost": (text) => `the connection broke after the message was sent: ${text}`,
};

const FILE_WORDS = {
  "denied": (text) => `this write is not allowed: ${text}`,
  "effect-mismatch": (text) => text,
  "in-flight": () => HELD,
  "invalid-request": (text) => `the file cannot be written as it stands: ${text}`,
  "write-failed": (text) => `the file was not written: ${text}`,
};

const SIGNAL_WORDS = {
  "signal-invalid-name": () => "the name of a signal has 1 to 128 characters of A-Z a-z 0-9 . _ -: choose another name",
  "signal-too-many-calls": () =>
    "this attempt has polled and waited more often than the host allows: wait instead of polling in a loop",
  "signal-missing": () => "the host gave no signal to a wait without an end",
  "signal-format": (text) => `the payload does not have the expected shape: ${text}`,
};

const CHECKPOINT_WORDS = {
  "checkpoint-too-large": () =>
    "the state is larger than the host allows (64 KiB unless the operator set another limit): save less",
  "checkpoint-format": (text) => `the state does not have the expected shape: ${text}`,
};

function inWords(words, code, text) {
  const say = words[code];
  return say === undefined ? `${code}: ${text ?? ""}` : say(text);
}
