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
  if (typeof parameters !== 'object') {
    throw nacreError('type', 'parameters are an array or an object');
  }
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, copyValue(value, name)]),
  );
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
  if (value instanceof Date) {
    return new Date(value);
  }
  if (value instanceof Uint8Array) {
    return new Uint8Array(value);
  }
  if (value instanceof ArrayBuffer) {
    return value.slice(0);
  }
  try {
    // There is nothing when `toJSON` answers nothing.
    return new String(JSON.stringify(value) ?? 'null');
  } catch (error) {
    throw nacreError('type', `parameter ${which}: not JSON: ${String(error)}`, error);
  }
}
