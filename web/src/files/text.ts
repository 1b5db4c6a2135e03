// Reads files of text twice: first to find the types of all columns, then to convert the values.

import { CsvError, CsvParser, delimiterOf, isHeader, type Record as CsvRecord } from './csv';
import { columnNames, convert, convertJson, TypeGuess, type Cell } from './infer';
import { FileError, PIECE_ROWS, type Piece } from './messages';

/** The first pass counts for this part of the progress. */
const FIRST = 0.3;

/** The text of a file in pieces, with the part of it that was read. */
async function* textOf(file: File): AsyncGenerator<{ text: string; fraction: number }> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let done = 0;
  const reader = file.stream().getReader();
  try {
    for (;;) {
      const { done: end, value } = await reader.read();
      done += value?.length ?? 0;
      const text = end ? decoder.decode() : decoder.decode(value, { stream: true });
      yield { text, fraction: file.size > 0 ? done / file.size : 1 };
      if (end) return;
    }
  } catch (error) {
    if (error instanceof TypeError) throw new FileError('encoding', 'the file is not UTF-8');
    throw error;
  } finally {
    reader.releaseLock();
  }
}

/** Batches of parsed rows, with the part of the file that was read. */
type Batches<R> = () => AsyncGenerator<{ rows: R[]; fraction: number }>;

/** What a format of text knows about its rows. */
interface Format<R> {
  batches: Batches<R>;
  /** Looks at a row in the first pass. */
  look(row: R): void;
  /** After the first pass. */
  columns(): { name: string; type: string }[];
  /** The value of a column in the second pass. */
  cell(row: R, column: number): Cell;
}

async function* twice<R>(format: Format<R>): AsyncGenerator<Piece> {
  for await (const { rows, fraction } of format.batches()) {
    rows.forEach((row) => format.look(row));
    yield { kind: 'progress', text: 'Finding the types', fraction: FIRST * fraction };
  }
  const columns = format.columns();
  if (columns.length === 0) throw new FileError('empty', 'the file has no rows');
  yield { kind: 'table', columns };
  let waiting: R[] = [];
  const piece = (fraction: number): Piece => {
    const values = columns.map(({ name }, at): [string, Cell[]] => [
      name,
      waiting.map((row) => format.cell(row, at)),
    ]);
    const count = waiting.length;
    waiting = [];
    const part = FIRST + (1 - FIRST) * fraction;
    return { kind: 'rows', columns: Object.fromEntries(values), count, fraction: part };
  };
  for await (const { rows, fraction } of format.batches()) {
    for (const row of rows) {
      waiting.push(row);
      if (waiting.length >= PIECE_ROWS) yield piece(fraction);
    }
  }
  if (waiting.length > 0) yield piece(1);
}

/** Reads CSV and its relatives. */
export async function* readCsv(file: File): AsyncGenerator<Piece> {
  const head = await file.slice(0, 65_536).text();
  const delimiter = delimiterOf(head);
  let names: string[] | undefined;
  let hasHeader = false;
  const guesses: TypeGuess[] = [];

  async function* batches() {
    const parser = new CsvParser(delimiter);
    let first = true;
    try {
      for await (const { text, fraction } of textOf(file)) {
        const line = parser.line;
        const rows = text === '' ? parser.end() : parser.push(text);
        if (first && rows.length > 0) {
          first = false;
          hasHeader = isHeader(rows[0]!);
          names ??= hasHeader ? (rows[0] as string[]) : rows[0]!.map(() => '');
          if (hasHeader) rows.shift();
        }
        const wrong = rows.find((row) => row.length !== names!.length);
        if (wrong) {
          const message = `a record has ${wrong.length} fields, and the first one has ${names!.length}`;
          throw new CsvError(message, line + rows.indexOf(wrong) + (hasHeader ? 1 : 0));
        }
        yield { rows, fraction };
      }
    } catch (error) {
      if (error instanceof CsvError) throw new FileError('csv', error.message, error.line);
      throw error;
    }
  }

  let types: { name: string; type: string }[] = [];
  yield* twice<CsvRecord>({
    batches,
    look: (row) => row.forEach((value, at) => (guesses[at] ??= new TypeGuess()).text(value)),
    columns: () =>
      (types = columnNames(names ?? []).map((name, at) => ({
        name,
        type: guesses[at]?.type ?? 'text',
      }))),
    cell: (row, at) => convert(row[at] ?? null, types[at]!.type),
  });
}

type JsonRow = Record<string, unknown>;

/** Reads one JSON object per line, or one array of objects. */
export async function* readJson(file: File): AsyncGenerator<Piece> {
  const isArray = (await file.slice(0, 1024).text()).trimStart().startsWith('[');
  const guesses = new Map<string, TypeGuess>();
  let types: { name: string; type: string }[] = [];
  let keys: string[] = [];
  yield* twice<JsonRow>({
    batches: isArray ? () => wholeArray(file) : () => lines(file),
    look: (row) => {
      for (const [key, value] of Object.entries(row)) {
        let guess = guesses.get(key);
        if (!guess) guesses.set(key, (guess = new TypeGuess()));
        guess.json(value);
      }
    },
    columns: () => {
      keys = [...guesses.keys()];
      return (types = columnNames(keys).map((name, at) => ({
        name,
        type: guesses.get(keys[at]!)!.type,
      })));
    },
    cell: (row, at) => convertJson(row[keys[at]!], types[at]!.type),
  });
}

async function* wholeArray(file: File) {
  let rows: unknown;
  try {
    rows = JSON.parse(await file.text());
  } catch (error) {
    throw new FileError('json', messageOf(error));
  }
  yield { rows: (rows as unknown[]).map((row) => objectOf(row)), fraction: 1 };
}

async function* lines(file: File) {
  let rest = '';
  let line = 0;
  for await (const { text, fraction } of textOf(file)) {
    const all = (rest + text).split('\n');
    rest = text === '' ? '' : all.pop()!;
    const rows: JsonRow[] = [];
    for (const each of all) {
      line += 1;
      if (each.trim() === '') continue;
      try {
        rows.push(objectOf(JSON.parse(each), line));
      } catch (error) {
        throw error instanceof FileError ? error : new FileError('json', messageOf(error), line);
      }
    }
    yield { rows, fraction };
  }
}

function objectOf(value: unknown, line?: number): JsonRow {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonRow;
  throw new FileError('json', 'every row must be an object', line);
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
