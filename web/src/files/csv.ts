// Reads CSV as RFC 4180 describes it, from pieces of text of any size.
//
// Fields are separated by a comma, a semicolon, a tab or `|`, whichever splits the first lines evenly.
// An empty field without quotes is null, and one in quotes an empty text. Empty lines are skipped.

/** A file that is not valid, with the line of the mistake. */
export class CsvError extends Error {
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

export type Record = (string | null)[];

const DELIMITERS = [',', ';', '\t', '|'];

/** The delimiter that gives the first lines of a text most fields, the same number in each. */
export function delimiterOf(text: string): string {
  const lines = text.split(/\r?\n/, 12).slice(0, 10).filter(Boolean);
  let best = ',';
  let most = 1;
  for (const delimiter of DELIMITERS) {
    const counts = lines.map((line) => line.replace(/"[^"]*"/g, '').split(delimiter).length);
    const least = Math.min(...counts);
    if (least > most) {
      most = least;
      best = delimiter;
    }
  }
  return best;
}

export class CsvParser {
  readonly #delimiter: string;
  #rest = '';
  #line = 1;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  /** Line on which the next record begins. */
  get line(): number {
    return this.#line;
  }

  /** Takes a piece of text and answers the records that are complete. */
  push(text: string): Record[] {
    this.#rest += text;
    return this.#parse(false);
  }

  /** Answers the last records. */
  end(): Record[] {
    return this.#parse(true);
  }

  #parse(last: boolean): Record[] {
    const text = this.#rest;
    const records: Record[] = [];
    let start = 0;
    for (;;) {
      const found = this.#record(text, start, last);
      if (!found) break;
      this.#line += found.lines;
      start = found.end;
      if (found.record) records.push(found.record);
    }
    this.#rest = text.slice(start);
    return records;
  }

  /** The record at a position; undefined if it is not complete. An empty line has no record. */
  #record(
    text: string,
    start: number,
    last: boolean,
  ): { record?: Record; end: number; lines: number } | undefined {
    if (start >= text.length) return undefined;
    const record: Record = [];
    let at = start;
    let lines = 1;
    for (;;) {
      let field: string | null;
      if (text[at] === '"') {
        const quoted = this.#quoted(text, at, last);
        if (!quoted) return undefined;
        field = quoted.field;
        for (let i = field.indexOf('\n'); i >= 0; i = field.indexOf('\n', i + 1)) lines += 1;
        at = quoted.end;
      } else {
        const end = this.#fieldEnd(text, at);
        field = end === at ? null : text.slice(at, end);
        at = end;
      }
      record.push(field);
      if (text[at] === this.#delimiter) {
        at += 1;
        continue;
      }
      if (at >= text.length && !last) return undefined;
      // A line feed may follow a carriage return in the next piece.
      if (text[at] === '\r' && at + 1 >= text.length && !last) return undefined;
      if (text[at] === '\r') at += 1;
      if (text[at] === '\n') at += 1;
      else if (at < text.length && text[at - 1] !== '\r') {
        throw new CsvError('a quoted field must end at a delimiter or a line', this.#line);
      }
      const empty = record.length === 1 && field === null;
      return { record: empty ? undefined : record, end: at, lines };
    }
  }

  #fieldEnd(text: string, start: number): number {
    for (let at = start; at < text.length; at += 1) {
      const character = text[at];
      if (character === this.#delimiter || character === '\n' || character === '\r') return at;
    }
    return text.length;
  }

  #quoted(text: string, start: number, last: boolean): { field: string; end: number } | undefined {
    let field = '';
    let from = start + 1;
    for (;;) {
      const quote = text.indexOf('"', from);
      if (quote < 0 || (quote + 1 >= text.length && !last)) {
        if (last && quote < 0) throw new CsvError('a quoted field has no end', this.#line);
        return undefined;
      }
      field += text.slice(from, quote);
      if (text[quote + 1] !== '"') return { field, end: quote + 1 };
      field += '"';
      from = quote + 2;
    }
  }
}

/** Whether the first record names the columns: no field is empty, a number or a date. */
export const isHeader = (record: Record): boolean =>
  record.every((field) => field !== null && !/^[-+]?[\d.]+(?:$|[-:eE/])/.test(field));
