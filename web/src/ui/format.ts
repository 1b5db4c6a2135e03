// Figures as people read them.

const whole = new Intl.NumberFormat('en-US');
const short = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

export const formatCount = (count: number): string => whole.format(count);

/** "1 row", "2 rows". */
export const plural = (count: number, word: string): string =>
  `${formatCount(count)} ${word}${count === 1 ? '' : 's'}`;

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${whole.format(bytes)} B`;
  if (bytes < 999_500) return `${short.format(bytes / 1000)} KB`;
  return `${short.format(bytes / 1_000_000)} MB`;
}

export function formatMs(ms: number): string {
  if (ms >= 9999) return `${short.format(ms / 1000)} s`;
  // A page's clock has steps of 0.1 ms unless it is isolated from other origins.
  if (ms < 0.05) return 'under 0.1 ms';
  if (ms < 1) return `${Math.round(ms * 100) / 100} ms`;
  return `${ms >= 100 ? whole.format(Math.round(ms)) : short.format(ms)} ms`;
}

/** A part of a whole, never rounded to nothing. */
export function formatShare(part: number, all: number): string {
  if (all <= 0 || part <= 0) return '0 %';
  const percent = (100 * part) / all;
  if (percent < 0.01) return 'under 0.01 %';
  return `${short.format(Math.min(percent, 100))} %`;
}
