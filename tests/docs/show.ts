/**
 * Formats printed values on one line, as Node's console does for short ones; browsers have no such
 * function.
 */

/** The text of a value on its own; strings have no quotes here. */
export function show(value: unknown): string {
  return typeof value === 'string' ? value : inner(value);
}

function inner(value: unknown): string {
  if (typeof value === 'string') {
    return `'${value}'`;
  }
  if (typeof value === 'bigint') {
    return `${value}n`;
  }
  if (value instanceof Date) {
    return value.toISOString();
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? '[]' : `[ ${value.map(inner).join(', ')} ]`;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, each]) => `${name}: ${inner(each)}`);
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
  }
  return String(value);
}
