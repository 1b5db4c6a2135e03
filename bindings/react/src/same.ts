/** Whether two lists of parameters are the same by value. */

/** Compares values, dates, bytes, and what arrays and plain objects contain. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) {
    return true;
  }
  if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) {
    return false;
  }
  if (a instanceof Date) {
    return Object.is(a.getTime(), (b as unknown as Date).getTime());
  }
  if (a instanceof ArrayBuffer) {
    return isSame(new Uint8Array(a), new Uint8Array(b as unknown as ArrayBuffer));
  }
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isSame(a[key], b[key]))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
