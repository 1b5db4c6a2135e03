/** Checks of what an application says about blobs. */

import { nacreError } from '../errors.js';
import { KEY, isKey } from './encrypted-store.js';

/** What an option must be, and how errors name it. */
export type Check = readonly [(value: unknown) => boolean, string];

/** The options of every blob store. */
export const COMMON: { readonly encryptionKey: Check; readonly retryForMs: Check } = {
  encryptionKey: [isKey, KEY],
  retryForMs: [isTime, 'a number of milliseconds'],
};

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

export function isTime(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}
