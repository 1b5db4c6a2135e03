/**
 * Runs a sqllogictest script on a database of the npm package: the files that `tests/slt` runs
 * natively, through the WebAssembly build. Supports statements, queries, conditions, sort modes,
 * labels and hashes, but one connection only.
 */

import { createHash } from 'node:crypto';
import type { Database, NacreError, QueryResult } from 'nacredb';

/** The outcome of a script. */
export interface Report {
  passed: number;
  /**
   * Number of skipped records by reason; records for other engines (`onlyif`, `skipif`) do not
   * count.
   */
  skipped: Map<string, number>;
  failures: string[];
}

/** The reason for skipping a record that is checked natively only. */
export const OTHER_TEXT = 'doubles, intervals and bytes as text: JavaScript formats them differently';

interface Outcome {
  result?: QueryResult;
  error?: NacreError;
}

interface Script {
  db: Database;
  /** SQLite's format: one value per line, truth values as 1 and 0. */
  sqlite: boolean;
  /** Names of this engine in `onlyif` and `skipif`. */
  names: string[];
  sort: string;
  labels: Map<string, string>;
  report: Report;
}

/** Runs the whole script, even if records fail. */
export async function runScript(db: Database, text: string, sqlite: boolean): Promise<Report> {
  const report: Report = { passed: 0, skipped: new Map(), failures: [] };
  const names = sqlite ? ['nacre', 'mysql'] : ['nacre'];
  const script: Script = { db, sqlite, names, sort: 'nosort', labels: new Map(), report };
  const lines = text.split('\n').map((line) => line.trimEnd());
  let conditions: [string, string][] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const words = line.split('#')[0]!.trim().split(/\s+/);
    if (words[0] === 'onlyif' || words[0] === 'skipif') {
      conditions.push([words[0], words[1]!]);
      continue;
    }
    const meant = isMeant(conditions, names);
    if (words[0] === 'halt' && meant) {
      break;
    }
    if (words[0] === 'control' && words[1] === 'sortmode') {
      script.sort = words[2]!;
    }
    if (words[0] !== 'statement' && words[0] !== 'query') {
      conditions = line === '' || line.startsWith('#') ? conditions : [];
      continue;
    }
    conditions = [];
    let end = at + 1;
    while (end < lines.length && lines[end] !== '') {
      end++;
    }
    const body = lines.slice(at + 1, end);
    if (meant) {
      await record(script, at + 1, line, body);
    }
    at = end;
  }
  return report;
}

/** Whether a record with these conditions applies to one of the names. */
function isMeant(conditions: [string, string][], names: string[]): boolean {
  return names.some((name) => conditions.every(([word, label]) => (word === 'onlyif') === (label === name)));
}

function skip({ report }: Script, reason: string): void {
  report.skipped.set(reason, (report.skipped.get(reason) ?? 0) + 1);
}

async function record(script: Script, number: number, head: string, body: string[]): Promise<void> {
  const bar = body.indexOf('----');
  const sql = (bar === -1 ? body : body.slice(0, bar)).join('\n');
  const lines = bar === -1 ? [] : body.slice(bar + 1);
  const outcome: Outcome = await script.db.query(sql).then(
    (result) => ({ result }),
    (error: NacreError) => ({ error }),
  );
  const wrong = head.startsWith('statement')
    ? statement(outcome, head.slice('statement'.length).trim())
    : query(script, outcome, head.slice('query'.length).trim(), lines);
  if (wrong === OTHER_TEXT) {
    skip(script, OTHER_TEXT);
  } else if (wrong === null) {
    script.report.passed++;
  } else {
    script.report.failures.push(`line ${number}: ${wrong}\n  ${sql}`);
  }
}

function shown(error: NacreError): string {
  const hint = error.hint === undefined ? '' : `; ${error.hint}`;
  const { position } = error;
  const place = position === undefined ? '' : ` (line ${position.line}, column ${position.column})`;
  return `${error.kind}: ${error.message}${hint}${place}`;
}

function statement({ result, error }: Outcome, expected: string): string | null {
  const [word, ...rest] = expected.split(' ');
  if (word === 'error') {
    return refused(error, rest.join(' '));
  }
  if (result === undefined) {
    return shown(error!);
  }
  const count = word === 'count' ? Number(rest[0]) : result.rowsAffected;
  return count === result.rowsAffected ? null : `${result.rowsAffected} rows affected, expected ${count}`;
}

/**
 * Checks an expected error: any, one with an SQLSTATE in parentheses, or one whose message matches.
 */
function refused(error: NacreError | undefined, pattern: string): string | null {
  if (error === undefined) {
    return 'succeeded, an error was expected';
  }
  const state = /^\(([0-9A-Z]{5})\)$/.exec(pattern);
  const anyCase = pattern.startsWith('(?i)');
  const fits =
    state !== null
      ? state[1] === error.sqlstate
      : new RegExp(anyCase ? pattern.slice('(?i)'.length) : pattern, anyCase ? 'i' : '').test(shown(error));
  return fits ? null : `another error was expected; got (${error.sqlstate}) ${shown(error)}`;
}

function query(script: Script, { result, error }: Outcome, head: string, lines: string[]): string | null {
  const [letters = '', ...rest] = head.split(/\s+/);
  if (letters === 'error') {
    return refused(error, head.slice('error'.length).trim());
  }
  if (result === undefined) {
    return shown(error!);
  }
  if (letters.length !== result.columns.length) {
    return `${result.columns.length} columns, expected ${letters.length}`;
  }
  if (result.columns.some(({ type }, i) => letters[i] === 'T' && /^(FLOAT|DOUBLE|INTERVAL|VARBINARY|BLOB)/.test(type))) {
    return OTHER_TEXT;
  }
  const sorts = ['nosort', 'rowsort', 'valuesort'];
  const sort = sorts.includes(rest[0] ?? '') ? rest.shift()! : script.sort;
  const label = rest[0];
  let rows = Array.from({ length: result.rowCount }, (_, row) =>
    result.values(row).map((value, i) => cell(value, letters[i]!, script.sqlite)),
  );
  if (sort === 'rowsort') {
    rows.sort(compareRows);
  } else if (sort === 'valuesort') {
    rows = rows
      .flat()
      .sort(compare)
      .map((value) => [value]);
  }
  const values = rows.flat();
  const md5 = createHash('md5').update(values.map((value) => `${value}\n`).join(''));
  const hash = `${values.length} values hashing to ${md5.digest('hex')}`;
  if (label !== undefined && (script.labels.get(label) ?? hash) !== hash) {
    return `not the result of the earlier query labelled ${label}`;
  }
  if (label !== undefined) {
    script.labels.set(label, hash);
  }
  if (lines.length === 1 && / values hashing to /.test(lines[0]!)) {
    return lines[0] === hash ? null : `${hash}, expected ${lines[0]}`;
  }
  const actual = script.sqlite ? values : rows.map((row) => row.join(' '));
  const at = [...actual, ''].findIndex((line, i) => line !== (lines[i] ?? ''));
  return actual.length === lines.length && at === -1
    ? null
    : `result differs from line ${at + 1} on: ${actual[at] ?? '(end)'}, expected ${lines[at] ?? '(end)'}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function compareRows(a: string[], b: string[]): number {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at === -1 ? 0 : compare(a[at]!, b[at]!);
}

/** One value under a type letter, as `tests/slt/src/format.rs` writes it. */
function cell(value: unknown, letter: string, sqlite: boolean): string {
  if (value === null) {
    return 'NULL';
  }
  const text = String(value);
  if (letter === 'I') {
    return typeof value === 'boolean' ? String(Number(value)) : (/^-?\d+/.exec(text)?.[0].replace(/^-0+$/, '0') ?? '0');
  }
  if (letter === 'R') {
    return (typeof value === 'boolean' ? Number(value) : Number.parseFloat(text) || 0).toFixed(3);
  }
  if (typeof value === 'boolean' && sqlite) {
    return String(Number(value));
  }
  if (text === '') {
    return '(empty)';
  }
  return sqlite ? text.replace(/[^ -~]/gu, '@') : text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '@');
}
