/**
 * Parameters on their way to the engine, as they are when the call is made. They are read later: when the task's calls
 * are sent together, or when earlier calls of the session have ended. So whatever the caller can change is copied.
 */

import { nacreError } from '../../../worker/shared/errors.js';
import type { WireParameters } from './transport.js';
import type { Parameters } from './types.js';

/** A copy. JSON is made here, so that it means the same with a worker and without, and goes as a String object. */
export function copyParameters(parameters: Parameters | null | undefined): WireParameters {
  if (parameters === undefined || parameters === null) {
    return undefined;
  }
  if (Array.isArray(parameters)) {
    return parameters.map((value: unknown, i) => copyValue(value, i + 1));
  }
  if (typeof parameters !== 'object' || hasNoJson(parameters)) {
    throw nacreError('type', 'parameters are an array or an object');
  }
  return Object.fromEntries(
    entriesOf(parameters).map(([name, value]) => [name, copyValue(value, name)]),
  );
}

function entriesOf(parameters: object): [string, unknown][] {
  try {
    return Object.entries(parameters);
  } catch (error) {
    throw nacreError('type', `the parameters cannot be read: ${String(error)}`, error);
  }
}

function copyValue(value: unknown, which: string | number): unknown {
  switch (typeof value) {
    case 'object':
      return value === null ? null : copyObject(value, which);
    case 'function':
    case 'symbol':
      throw nacreError('type', `parameter ${which}: a ${typeof value} has no SQL type`);
    default:
      return value;
  }
}

function copyObject(value: object, which: string | number): unknown {
  const name = classOf(value);
  try {
    if (name === 'Date') {
      return new Date(Number(value));
    }
    if (name === 'Uint8Array' && ArrayBuffer.isView(value)) {
      return new Uint8Array(value as Uint8Array);
    }
    if (name === 'ArrayBuffer') {
      return new Uint8Array((value as ArrayBuffer).slice(0));
    }
  } catch (error) {
    throw nacreError(
      'type',
      `parameter ${which}: the ${name} cannot be read: ${String(error)}`,
      error,
    );
  }
  if (hasNoJson(value)) {
    throw nacreError('type', `parameter ${which}: the class ${classOf(value)} has no SQL type`);
  }
  try {
    // There is nothing when `toJSON` answers nothing.
    return new String(JSON.stringify(value) ?? 'null');
  } catch (error) {
    throw nacreError('type', `parameter ${which}: not JSON: ${String(error)}`, error);
  }
}

/** What JSON makes `{}` of, or a list of bytes as an object, would be lost without a word. */
const WITHOUT_JSON: ReadonlySet<string> = new Set([
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'Promise', 'RegExp', 'Error'],
  ...['SharedArrayBuffer', 'Blob', 'File', 'FormData', 'Headers', 'URLSearchParams', 'AbortSignal'],
]);

/** Unless it says itself what its JSON is. */
function hasNoJson(value: object): boolean {
  return (ArrayBuffer.isView(value) || WITHOUT_JSON.has(classOf(value))) && !('toJSON' in value);
}

/** The built-in class of an object, also of another realm. */
function classOf(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}
