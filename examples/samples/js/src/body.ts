// The body of an answer whose form nobody promised.

import { parseJson, type Response } from "@deedbox/guest";

/** The body as JSON, or else as text. */
export function bodyOf(answer: Response): unknown {
  const text = answer.text();
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
