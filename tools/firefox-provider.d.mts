import type { BrowserProviderOption } from 'vitest/node';

export function installedFirefox(): BrowserProviderOption;
