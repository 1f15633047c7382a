// Values in words, as a console prints them.

const MOST_CAUSES = 8;
// A recursion without end has thousands, and what is said last is what a reader of the log sees.
const MOST_STACK_LINES = 16;

/** One argument of `console.log`. */
export function words(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return errorWords(value, 0);
  if (typeof value === "object" && value !== null) {
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  }
  return typeof value === "bigint" ? `${value}n` : String(value);
}

/** The name and message, where it was thrown, and its cause. Not every engine has the first two in `stack`. */
function errorWords(error, depth) {
  const head = headOf(error);
  const lines = String(error.stack ?? "")
    .trimEnd()
    .split("\n");
  const stack = lines.slice(0, MOST_STACK_LINES + head.split("\n").length).join("\n");
  const text = stack.startsWith(head) ? stack : `${head}\n${stack}`.trimEnd();
  if (error.cause === undefined || depth === MOST_CAUSES) return text;
  const cause = error.cause instanceof Error ? errorWords(error.cause, depth + 1) : words(error.cause);
  return `${text}\ncaused by ${cause}`;
}

/** Its name and message. */
export function headOf(error) {
  return error.message === "" ? error.name : `${error.name}: ${error.message}`;
}
