/** Types of `api.mjs`, for the tests that use it. */
export const PAGES: { name: string; title: string; text: string; exports: string[] }[];
export function apiPages(root: string): Map<string, string>;
