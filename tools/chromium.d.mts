/** Types of `chromium.mjs`, for the tests that use it. */
export function launchOptions(): { executablePath: string; args: string[]; headless: boolean };
