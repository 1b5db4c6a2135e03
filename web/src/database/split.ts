// Splits a script into statements, each with its position, so that the console can run them one by
// one.
//
// Recognises what can hide a semicolon, and no other SQL: quotes, backslashes in `E'…'`, line
// comments, and nested block comments.

/** One statement of a script, and the position of its first character. */
export interface Statement {
  text: string;
  from: number;
}

/** The statements of a script, in order, without those that are only comments and white space. */
export function split(script: string): Statement[] {
  const statements: Statement[] = [];
  let position = 0;
  // Position of the statement's first character that is neither white space nor comment; -1 before
  // it.
  let first = -1;

  const close = (end: number) => {
    if (first >= 0) statements.push({ text: script.slice(first, end).trimEnd(), from: first });
    first = -1;
  };

  while (position < script.length) {
    const character = script[position]!;
    const pair = script.slice(position, position + 2);
    if (character === ';') {
      close(position);
      position += 1;
    } else if (pair === '--') {
      position = endOfLine(script, position);
    } else if (pair === '/*') {
      position = endOfComment(script, position);
    } else {
      if (first < 0 && !/\s/.test(character)) first = position;
      position =
        character === "'" || character === '"' || character === '`'
          ? endOfQuote(script, position, character)
          : position + 1;
    }
  }
  close(script.length);
  return statements;
}

function endOfLine(script: string, from: number): number {
  const end = script.indexOf('\n', from);
  return end < 0 ? script.length : end + 1;
}

function endOfComment(script: string, from: number): number {
  let depth = 0;
  let position = from;
  while (position < script.length) {
    const pair = script.slice(position, position + 2);
    if (pair === '/*') {
      depth += 1;
      position += 2;
    } else if (pair === '*/') {
      depth -= 1;
      position += 2;
      if (depth === 0) return position;
    } else {
      position += 1;
    }
  }
  return script.length;
}

/**
 * The position after a quoted string. A string with a doubled quote counts as two strings in a row.
 */
function endOfQuote(script: string, from: number, quote: string): number {
  if (quote === "'" && /(?:^|[^\w$])e$/i.test(script.slice(Math.max(0, from - 2), from)))
    return endOfEscaped(script, from);
  const end = script.indexOf(quote, from + 1);
  return end < 0 ? script.length : end + 1;
}

/** The position after the string of `E'…'`, where a backslash escapes the next character. */
function endOfEscaped(script: string, from: number): number {
  let position = from + 1;
  while (position < script.length && script[position] !== "'")
    position += script[position] === '\\' ? 2 : 1;
  return Math.min(position + 1, script.length);
}
