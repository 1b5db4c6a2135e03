// Keeps the script in the page's URL, so that a link opens the console with it. Opening a link
// never runs the script.

const PREFIX = '#sql=';

export function sharedScript(): string | undefined {
  if (!location.hash.startsWith(PREFIX)) return undefined;
  try {
    return decodeURIComponent(location.hash.slice(PREFIX.length));
  } catch {
    return undefined;
  }
}

export function share(script: string): void {
  try {
    window.history.replaceState(null, '', shareUrl(script));
  } catch {
    // Safari refuses more than a hundred changes in half a minute. The statement runs all the same.
  }
}

export function shareUrl(script: string): string {
  const url = new URL(location.href);
  url.hash = PREFIX + encodeURIComponent(script.trim());
  return url.href;
}
