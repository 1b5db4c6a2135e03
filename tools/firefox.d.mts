/** A tab. Values travel as JSON. */
export interface FirefoxPage {
  goto(url: string): Promise<void>;
  reload(): Promise<void>;
  evaluate<T>(work: () => T | Promise<T>): Promise<T>;
  evaluate<A, T>(work: (argument: A) => T | Promise<T>, argument: A): Promise<T>;
  waitForFunction(work: () => unknown): Promise<void>;
  waitForFunction<A>(work: (argument: A) => unknown, argument: A): Promise<void>;
  close(): Promise<void>;
}

/** Tabs that share storage and locks with each other, and with no others. */
export interface FirefoxContext {
  newPage(): Promise<FirefoxPage>;
  close(): Promise<void>;
}

export interface Firefox {
  readonly pid: number;
  readonly defaultContext: FirefoxContext;
  newContext(): Promise<FirefoxContext>;
  close(): Promise<void>;
}

export function findFirefox(): string | null;
export function ensureFirefox(): Promise<boolean>;
export function launchFirefox(preferences?: Record<string, unknown>): Promise<Firefox>;
