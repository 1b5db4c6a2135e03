// Splits a script into statements, each with its place, so that a console can run them one by one.
//
// Knows what may hide a semicolon: quotes, backslashes in `E'…'`, line comments, nested block comments. Knows no other
// SQL.

/** One statement of a script and where its first character is. */
export interface Statement {
  text: string;
  from: number;
}

/** The statements of a script, in order, without those that are only comments and space. */
export function split(script: string): Statement[] {
  const statements: Statement[] = [];
  let position = 0;
  // Where the first character that is neither space nor comment is; -1 while there is none.
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

/** A doubled quote inside is two quotes next to each other, which the caller sees as two quoted strings. */
function endOfQuote(script: string, from: number, quote: string): number {
  if (quote === "'" && /(?:^|[^\w$])e$/i.test(script.slice(Math.max(0, from - 2), from)))
    return endOfEscaped(script, from);
  const end = script.indexOf(quote, from + 1);
  return end < 0 ? script.length : end + 1;
}

/** Of `E'…'`, where a backslash takes the next character along. */
function endOfEscaped(script: string, from: number): number {
  let position = from + 1;
  while (position < script.length && script[position] !== "'")
    position += script[position] === '\\' ? 2 : 1;
  return Math.min(position + 1, script.length);
}
