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
  window.history.replaceState(null, '', shareUrl(script));
}

export function shareUrl(script: string): string {
  const url = new URL(location.href);
  url.hash = PREFIX + encodeURIComponent(script.trim());
  return url.href;
}
