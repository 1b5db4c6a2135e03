/** Types of `links.mjs`, for the tests that use it. */
export function brokenLinks(folder: string, base: string): string[];
