// A script in the page's address, so that a link opens the console with it. A link never runs anything by itself.

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
    // Safari refuses more than a hundred in half a minute; the address is not worth a statement that does not run.
  }
}

export function shareUrl(script: string): string {
  const url = new URL(location.href);
  url.hash = PREFIX + encodeURIComponent(script.trim());
  return url.href;
}
