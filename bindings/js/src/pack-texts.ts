/**
 * Texts on their way into a table, as bytes: an engine in a worker then makes no string of each,
 * which its collector of garbage would have to find later, and calls from WebAssembly once for a
 * column instead of several times for a value.
 */

import type { WireTexts } from '../../../worker/shared/wire.js';

/** Larger texts are sent one by one: a string of all of them might be too long. */
const MAX_UNITS = 16 << 20;

const encoder = new TextEncoder();

/** Packs values that are all texts or null; null if others are among them, or text that is no Unicode. */
export function packTexts(values: readonly unknown[]): WireTexts | null {
  let units = 0;
  for (const value of values) {
    if (typeof value === 'string') {
      units += value.length;
    } else if (value !== null && value !== undefined) {
      return null;
    }
  }
  if (units > MAX_UNITS) {
    return null;
  }
  // Of null and undefined it takes nothing.
  const all = values.join('');
  const lengths = new Int32Array(values.length);
  if (/[^\0-\x7f]/.test(all)) {
    return encodeEach(values, new Uint8Array(3 * units), lengths);
  }
  for (let i = 0; i < values.length; i++) {
    lengths[i] = (values[i] as string | null | undefined)?.length ?? -1;
  }
  return { bytes: encoder.encode(all), lengths };
}

/** Encodes texts into a buffer that is large enough for them; null if one of them is no Unicode. */
function encodeEach(
  values: readonly unknown[],
  buffer: Uint8Array,
  lengths: Int32Array,
): WireTexts | null {
  let used = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string | null | undefined;
    if (value === null || value === undefined) {
      lengths[i] = -1;
    } else if (/\p{Surrogate}/u.test(value)) {
      return null;
    } else {
      lengths[i] = encoder.encodeInto(value, buffer.subarray(used)).written;
      used += lengths[i]!;
    }
  }
  return { bytes: buffer.slice(0, used), lengths };
}
