// The host behind the interface of ../host.js: the component's imports.
//
// The engines differ in how they show a WIT type, and only here that is known.

import * as checkpoint from "deedbox:activity/checkpoint@0.1.0";
import * as context from "deedbox:activity/context@0.1.0";
import * as files from "deedbox:activity/files@0.1.0";
import * as http from "deedbox:activity/http@0.1.0";
import * as idempotency from "deedbox:activity/idempotency@0.1.0";
import * as messaging from "deedbox:activity/messaging@0.1.0";
import * as signals from "deedbox:activity/signals@0.1.0";

import { Refusal } from "../host.js";

// QuickJS gives an interface as the default export, SpiderMonkey each function by its name.
const functionsOf = (module) => module.default ?? module;

/** The host's calls. `toU64` makes what the engine takes for a `u64`. */
export function hostOf(toU64) {
  const [keys, run, web, bus, disk, inbox, note] = [
    idempotency,
    context,
    http,
    messaging,
    files,
    signals,
    checkpoint,
  ].map(functionsOf);
  return {
    idempotencyKey: () => keys.idempotencyKey(),
    subkey: (name) => refusing(() => keys.subkey(name)),
    run: () => {
      const info = run.run();
      return { ...info, remainingMs: Number(info.remainingMs) };
    },
    cancelled: () => run.cancelled(),
    send: (request, options) => answerOf(refusing(() => web.send(request, options))),
    publish: (subject, payload, options) => {
      const published = refusing(() => bus.publish(subject, payload, options));
      return { ...published, sequence: Number(published.sequence) };
    },
    write: (path, bytes, identity) => refusing(() => disk.write(path, bytes, identity)),
    append: (path, bytes) => refusing(() => disk.append(path, bytes)),
    pollSignal: (name) => signalOf(refusing(() => inbox.poll(name))),
    waitSignal: (name, ms) => {
      const limit = ms === undefined ? undefined : toU64(ms);
      return signalOf(refusing(() => inbox.wait(name, limit)));
    },
    save: (state) => refusing(() => note.save(state)),
    load: () => note.load() ?? undefined,
  };
}

/** The `failure` of the WIT. A failure whose own parts do not fit it is made to fit, so that it is not lost. */
export function witFailure(failure, toU64) {
  const { code, message, kind, retryAfterMs, details } = failure;
  const delay = Number.isFinite(retryAfterMs) ? Math.ceil(Math.min(Math.max(retryAfterMs, 0), 2 ** 53 - 1)) : undefined;
  return {
    code: String(code),
    message: String(message),
    kind,
    retryAfterMs: delay === undefined ? undefined : toU64(delay),
    details: details === undefined ? undefined : detailsText(details),
  };
}

function detailsText(details) {
  try {
    return JSON.stringify(details) ?? "null";
  } catch (error) {
    return JSON.stringify({ unwritable: error.message });
  }
}

function answerOf(response) {
  return { ...response, effectId: response.effectId ?? undefined };
}

function signalOf(signal) {
  return signal === undefined || signal === null ? undefined : { ...signal, sequence: Number(signal.sequence) };
}

function refusing(call) {
  try {
    return call();
  } catch (error) {
    if (error?.payload !== undefined) throw new Refusal(error.payload);
    throw error;
  }
}
