/**
 * Finds the statements in a text that would end a transaction, before any of them runs: those of one text run in one
 * call, so what came after a COMMIT would be committed by itself. Knows what hides a word (quotes, comments), and no
 * other SQL. It may overlook one in odd text; that is seen when the next statement finds no transaction.
 */

/** Quoted text and comments. `E'…'` knows backslashes. */
const HIDING = /\be'(?:\\[^]|[^'\\])*'|'[^']*'|"[^"]*"|`[^`]*`|--.*|\/\*[^]*?\*\//gi;
/** `ROLLBACK TO s` goes back to a savepoint and ends nothing. */
const ENDING = /(?:^|;)\s*(?:commit|end|abort|rollback(?!(?:\s+(?:work|transaction))?\s+to\b))\b/i;
/** Most texts have none of the words. */
const MAYBE = /\b(?:commit|end|abort|rollback)\b/i;

/** Whether a statement of a text is COMMIT or ROLLBACK, or another word for them. */
export function endsTransaction(sql: string): boolean {
  return MAYBE.test(sql) && ENDING.test(sql.replace(HIDING, ' '));
}
