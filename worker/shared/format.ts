/** Formats values that JavaScript has no type for, as the engine does. */

const MICROS_PER_DAY = 86_400_000_000n;
const MICROS_PER_SECOND = 1_000_000;

/** `-12.30` for `(-1230n, 2)`. */
export function formatDecimal(unscaled: bigint, scale: number): string {
  if (scale === 0) {
    return unscaled.toString();
  }
  const negative = unscaled < 0n;
  const digits = (negative ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const point = digits.length - scale;
  return `${negative ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** `2026-11-21` for days since 1970-01-01. */
export function formatDate(days: number): string {
  const date = new Date(days * 86_400_000);
  return `${pad(date.getUTCFullYear(), 4)}-${pad(date.getUTCMonth() + 1, 2)}-${pad(date.getUTCDate(), 2)}`;
}

/** `13:05:07`, with six more digits if there are microseconds. */
export function formatTime(micros: bigint): string {
  const all = Number(micros);
  const seconds = Math.floor(all / MICROS_PER_SECOND);
  const fraction = all - seconds * MICROS_PER_SECOND;
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => pad(part, 2))
    .join(':');
  return fraction === 0 ? clock : `${clock}.${pad(fraction, 6)}`;
}

/** `2026-11-21 13:05:07` for microseconds since 1970-01-01 00:00:00. */
export function formatTimestamp(micros: bigint): string {
  const time = ((micros % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
  return `${formatDate(Number((micros - time) / MICROS_PER_DAY))} ${formatTime(time)}`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
