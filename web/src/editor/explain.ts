// What the button Explain asks: the plan of one statement, which is never run for it.

/** Words, with space and comments after them, that ask for a plan already or would run the statement for it. */
const ASKING = /^(?:(?:explain|describe|desc|profile|analyze)\b(?:\s|--.*|\/\*[^]*?\*\/)*)+/i;

/** A statement that answers how a statement would run. */
export function explained(statement: string): string {
  return `explain ${statement.replace(ASKING, '')}`;
}
