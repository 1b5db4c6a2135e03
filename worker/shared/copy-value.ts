/**
 * Copies one value on its way into the engine. JSON is made here, so that it is the same with and
 * without a worker; it travels as a String object.
 */

import { nacreError } from './errors.js';

/** Copies one value; `which` names it in errors. */
export function copyValue(value: unknown, which: string | number): unknown {
  switch (typeof value) {
    case 'object':
      return value === null ? null : copyObject(value, which);
    case 'function':
    case 'symbol':
      throw nacreError('type', `${label(which)}: a ${typeof value} has no SQL type`);
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
      `${label(which)}: the ${name} cannot be read: ${String(error)}`,
      error,
    );
  }
  if (hasNoJson(value)) {
    throw nacreError('type', `${label(which)}: the class ${classOf(value)} has no SQL type`);
  }
  try {
    // `stringify` answers undefined when `toJSON` does.
    return new String(JSON.stringify(value) ?? 'null');
  } catch (error) {
    throw nacreError('type', `${label(which)}: cannot be written as JSON: ${String(error)}`, error);
  }
}

/** A parameter by its position or name, or a value that has a description. */
function label(which: string | number): string {
  return typeof which === 'string' && which.includes(' ') ? which : `parameter ${which}`;
}

/** Classes that `JSON.stringify` would silently turn into `{}` or into an object of bytes. */
const WITHOUT_JSON: ReadonlySet<string> = new Set([
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'Promise', 'RegExp', 'Error'],
  ...['SharedArrayBuffer', 'Blob', 'File', 'FormData', 'Headers', 'URLSearchParams', 'AbortSignal'],
]);

/**
 * Whether JSON would lose the object's content. An object with `toJSON` defines its JSON itself.
 */
export function hasNoJson(value: object): boolean {
  return (ArrayBuffer.isView(value) || WITHOUT_JSON.has(classOf(value))) && !('toJSON' in value);
}

/** The name of an object's built-in class, even if the object comes from another realm. */
function classOf(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}
