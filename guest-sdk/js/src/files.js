// Files through the ledger: whole files, in directories that the operator has granted.
//
// The host claims each write first, and puts the file in place at once. Nothing here reads, appends or deletes.

import { FileError } from "./failure.js";
import { asking } from "./host.js";
import { bytesOf, checkKnown, identityOf } from "./options.js";

const KNOWN = ["effect", "business"];

/** Where writes start. */
export class Files {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** Writes a whole file, or answers from the ledger. The first segment of the path names the granted directory. */
  write(path, content, options = {}) {
    checkKnown(options, KNOWN, invalid);
    const bytes = bytesOf(content, (words) => invalid(`the content: ${words}`));
    const identity = identityOf(options, invalid);
    return asking(() => this.#host.write(path, bytes, identity), refused);
  }

  /** Always refused, with the reason: an append that is made twice writes twice. */
  append(path, content) {
    const bytes = bytesOf(content, (words) => invalid(`the content: ${words}`));
    asking(() => this.#host.append(path, bytes), refused);
  }
}

const invalid = (words) => new FileError("invalid-request", words);
const refused = (tag, val) => new FileError(tag === "failed" ? "write-failed" : tag, val);
