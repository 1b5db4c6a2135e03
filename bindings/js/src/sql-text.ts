/**
 * What can be told of SQL by its text, where the engine cannot be asked. Every answer errs on the
 * safe side.
 */

/** Strings, quoted names and comments. */
const QUOTED = /\be'(?:[^'\\]|\\[^])*'|'[^']*'|"[^"]*"|`[^`]*`|--.*|\/\*[^]*?\*\//gi;
/** As `QUOTED`, or the end of a statement. */
const PARTS = new RegExp(`${QUOTED.source}|;`, 'gi');

/** What is left of a text without its strings, quoted names and comments: the words of SQL. */
function wordsOf(text: string): string {
  return text.replace(QUOTED, ' ');
}

/** Whether a text is one statement that only reads. False where in doubt. */
export function isRead(text: string): boolean {
  const words = wordsOf(text);
  const isOne = !/;\s*\S/.test(words);
  return (
    isOne &&
    (/^\s*(select|values|show)\b/i.test(words) ||
      (/^\s*with\b/i.test(words) && !/\b(insert|update|delete|replace|merge)\b/i.test(words)))
  );
}

/**
 * Whether a text begins a transaction without ending it (true), or ends one (false); null if it does
 * neither.
 */
export function leavesTransactionOpen(text: string): boolean | null {
  const found = [
    ...wordsOf(text).matchAll(
      /(?:^|;)\s*(begin|start|commit|end|abort|rollback(?!\s+((work|transaction)\s+)?to\b))\b/gi,
    ),
  ];
  const last = found.at(-1)?.[1];
  return last === undefined ? null : /^[bs]/i.test(last);
}

/** Whether a text makes a temporary table, or names a prepared statement: they end with the session. */
export function isOfSession(text: string): boolean {
  const made = /\b(temp|temporary)\s+table\b|\bprepare\s[^;]*\bas\b/i;
  // Most texts have neither word, and are not taken apart.
  return /\b(temp|temporary|prepare)\b/i.test(text) && made.test(wordsOf(text));
}

/** The settings that a text changes, each with the statement that does. */
export function settingsOf(text: string): [name: string, statement: string][] {
  return /\bset\b/i.test(text)
    ? statementsOf(text).flatMap((statement): [string, string][] => {
        const assigned = /^\s*set\s+(?:session\s+)?(\w+)\s*(?:=|\bto\b)/i.exec(wordsOf(statement));
        return assigned === null ? [] : [[assigned[1]!.toLowerCase(), statement.trim()]];
      })
    : [];
}

/** The statements of a text. */
function statementsOf(text: string): string[] {
  const ends = [...text.matchAll(PARTS)].filter(([part]) => part === ';').map(({ index }) => index);
  const starts = [0, ...ends.map((end) => end + 1)];
  return starts.map((start, at) => text.slice(start, ends[at]));
}
