/** Checks of what an application says about blobs. */

import { nacreError } from '../errors.js';
import { KEY, isKey } from './encrypted-store.js';
import type { KeepOptions } from './options.js';

/** What an option must be, and how errors name it. */
export type Check = readonly [(value: unknown) => boolean, string];

const TIME: Check = [isTime, 'a number of milliseconds'];

/** What the engine is told of a blob store. */
export interface Settings extends KeepOptions {
  /** The state of the past that is opened. */
  asOf?: number | Date | undefined;
}

const SETTINGS: Record<keyof Settings, Check> = {
  historyMs: TIME,
  retentionMs: TIME,
  leaseMs: TIME,
  unsentLimit: [isCount, 'a number of bytes'],
  warm: [(value) => typeof value === 'boolean', 'true or false'],
  asOf: [(value) => isCount(value) || isDate(value), 'a position of the log or a Date'],
};

/** The options of every blob store. */
export const COMMON: Record<'encryptionKey' | 'retryForMs' | keyof Settings, Check> = {
  encryptionKey: [isKey, KEY],
  retryForMs: TIME,
  ...SETTINGS,
};

/** The options among others that the engine is told. */
export function settingsOf(options: Settings): Settings {
  const { historyMs, retentionMs, leaseMs, unsentLimit, warm, asOf } = options;
  return { historyMs, retentionMs, leaseMs, unsentLimit, warm, asOf };
}

/**
 * Checks options against `checks`, which has one for each that there may be; all but `needed` may be
 * missing.
 */
export function checkOptions(
  options: object,
  checks: Readonly<Record<string, Check>>,
  needed: string,
): void {
  for (const [name, value] of Object.entries({ [needed]: undefined, ...options })) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) {
      throw nacreError('type', `blobs has no option '${name}' beside ${needed}`);
    }
    // Not the value: it may be a secret.
    if (!(value === undefined && name !== needed) && !check[0](value)) {
      throw nacreError('type', `blobs.${name} must be ${check[1]}`);
    }
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isDate(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime());
}

export function isTime(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}
