// What the buttons Explain and Profile run: a statement that shows the plan of another.

/**
 * Leading words, with white space and comments, that explain a statement already or would run it.
 */
const ASKING = /^(?:(?:explain|describe|desc|profile|analyze)\b(?:\s|--.*|\/\*[^]*?\*\/)*)+/i;

/** The statement that shows the plan of a statement without running it. */
export function explained(statement: string): string {
  return `explain ${statement.replace(ASKING, '')}`;
}

/** The statement that runs a statement and shows its plan with times. */
export function profiled(statement: string): string {
  return `profile ${statement.replace(ASKING, '')}`;
}
