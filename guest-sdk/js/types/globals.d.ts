// The globals of a component that are not JavaScript's own, for `"types": ["@deedbox/guest/globals"]` in tsconfig.json.
// They are those that both engines have; with SpiderMonkey, add "DOM" to `lib` for fetch, URL and timers.

declare var console: Console;

interface Console {
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
}

declare var crypto: Crypto;

interface Crypto {
  getRandomValues<T extends ArrayBufferView | null>(array: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
}

declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  decode(source?: ArrayBuffer | ArrayBufferView): string;
}

declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function queueMicrotask(task: () => void): void;
