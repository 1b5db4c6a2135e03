// Formats numbers, sizes, times and shares for the page.

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
  // The resolution of a page's clock is 0.1 ms unless the page is cross-origin isolated.
  if (ms < 0.05) return 'under 0.1 ms';
  if (ms < 1) return `${Math.round(ms * 100) / 100} ms`;
  return `${ms >= 100 ? whole.format(Math.round(ms)) : short.format(ms)} ms`;
}

/** A share in percent, never rounded to zero. */
export function formatShare(part: number, all: number): string {
  if (all <= 0 || part <= 0) return '0 %';
  const percent = (100 * part) / all;
  if (percent < 0.01) return 'under 0.01 %';
  return `${short.format(Math.min(percent, 100))} %`;
}
