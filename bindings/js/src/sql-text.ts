/**
 * What can be told of SQL by its text, where the engine cannot be asked. Every answer errs on the
 * safe side.
 */

/** How much of the ends of a long text is looked at. */
const ENDS = 500;

/** Whether a text is one statement that only reads. False where in doubt. */
export function isRead(text: string): boolean {
  const isOne = !/;\s*\S/.test(text);
  return (
    isOne &&
    (/^\s*(select|values|show)\b/i.test(text) ||
      (/^\s*with\b/i.test(text) && !/\b(insert|update|delete|replace|merge)\b/i.test(text)))
  );
}

/**
 * Whether a text begins a transaction without ending it (true), or ends one (false); null if it does
 * neither.
 */
export function leavesTransactionOpen(text: string): boolean | null {
  // Megabytes of values have their keywords at the ends.
  const ends = text.length < 2 * ENDS ? text : `${text.slice(0, ENDS)} ${text.slice(-ENDS)}`;
  const found = [
    ...ends.matchAll(/\b(begin|start\s+transaction|commit|rollback(?!\s+(work\s+)?to\b))\b/gi),
  ];
  const last = found.at(-1)?.[1];
  return last === undefined ? null : /^[bs]/i.test(last);
}

/** The name of the setting that a text changes; null if it does something else. */
export function settingOf(text: string): string | null {
  return (
    /^\s*set\s+(?:session\s+)?(\w+)\s*(?:=|\bto\b)[^;]*;?\s*$/i.exec(text)?.[1]?.toLowerCase() ??
    null
  );
}
