// What the button Explain runs: a statement that shows the plan of another without running it.

/**
 * Leading words, with white space and comments, that explain a statement already or would run it.
 */
const ASKING = /^(?:(?:explain|describe|desc|profile|analyze)\b(?:\s|--.*|\/\*[^]*?\*\/)*)+/i;

/** The statement that shows the plan of a statement. */
export function explained(statement: string): string {
  return `explain ${statement.replace(ASKING, '')}`;
}
