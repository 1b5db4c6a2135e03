/**
 * `npm run fuzz:wasm -- --cases N [--from N] [--target NAME]`: runs the statements of generated fuzz cases
 * natively, and the same through the package's WebAssembly build: answers are equal, errors are of the same
 * kind, and no statement ends the engine. A length that is 64 bits natively has 32 there, and what does not
 * fit has to be an error.
 *
 * The last line is `fuzz-wasm: cases=… statements=… left=… differing=…`. `left` are statements whose answers
 * may differ: what depends on time, chance or the plan, or reached a limit.
 */

import { spawn } from 'node:child_process';
import * as path from 'node:path';
import * as readline from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Failure, main, root } from './lib.mjs';

const TARGETS = ['functions', 'sql', 'differential', 'tlp'];
const CASES = 60;
/** As in `tests/fuzz/src/subject.rs`. */
const OPTIONS = {
  memoryLimit: 32 * 2 ** 20,
  cacheBytes: 2 ** 20,
  types: { date: 'string', json: 'string' },
};
/** A statement that takes longer is cancelled, as it is natively. */
const CANCEL_MS = 2_000;
const VARIES =
  /\b(now|random|rand|uuid|gen_random_uuid|setseed|version|connection_id|explain|profile|information_schema|show|describe|curdate|curtime|sysdate|localtime\w*|(current|utc)_\w+|today|optimize|get_current_\w+|transaction_timestamp|statement_timestamp|clock_timestamp|unix_timestamp|age|limit)\b/i;
const MAY_DIFFER = new Set(['limit', 'cancelled', 'lock_timeout']);
const SHOWN = 20;

/** Yields the cases that the native build runs: lists of statements with their answers. */
async function* cases(name, from, to) {
  // Not `-p`: that would build the engine again, without what others ask of it.
  const args = ['run', '-q', '--bin', 'nacre-fuzz', '--', name, String(from), String(to)];
  const child = spawn('cargo', args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  let lines = [];
  for await (const line of readline.createInterface({ input: child.stdout })) {
    if (line === '') {
      yield lines;
      lines = [];
    } else {
      lines.push(JSON.parse(line));
    }
  }
  const code = await ended;
  if (code !== 0) {
    throw new Failure(`the cases of ${name} end natively with ${code}`);
  }
}

/** Runs a statement: its columns and rows, or the kind of its error. */
async function answerOf(db, sql) {
  const signal = AbortSignal.timeout(CANCEL_MS);
  try {
    if (sql.includes(';')) {
      await db.exec(sql, { signal });
      return {};
    }
    const result = await db.query(sql, [], { signal });
    const types = result.columns.map(({ type }) => type);
    const rows = Array.from({ length: result.rowCount }, (_, row) => result.values(row));
    return { types, rows };
  } catch (error) {
    if (error.name !== 'NacreError') {
      throw error;
    }
    return { error: error.kind, message: error.message };
  }
}

const hex = (bytes) => Buffer.from(bytes).toString('hex');

const isDouble = (type) => /^(FLOAT|DOUBLE)/.test(type);
/** A double without its last digits: the mathematical functions of the two builds round differently. */
const rounded = (value) => String(Number(Number(value).toPrecision(14)));

/** A value of JavaScript as text, in the form that `known` gives to native texts. */
function shown(value, type) {
  if (value === null) {
    return 'NULL';
  }
  if (isDouble(type)) {
    return rounded(value);
  }
  return value instanceof Uint8Array ? `\\x${hex(value)}` : String(value);
}

/** The text of a native value, as JavaScript writes it. */
function known(text, type) {
  if (text === null) {
    return 'NULL';
  }
  return isDouble(type) ? rounded(text) : text;
}

/** What differs between a native answer and one of this build, or null. */
function difference(native, here) {
  if (native.error !== undefined || here.error !== undefined) {
    const isSame = native.error === here.error;
    return isSame
      ? null
      : `natively ${native.error ?? 'rows'}, here ${here.error ?? 'rows'}: ${here.message ?? ''}`;
  }
  if (here.rows === undefined) {
    return null;
  }
  const text = (row) => row.join(' | ');
  const expected = native.rows.map((row) =>
    text(row.map((value, at) => known(value, here.types[at]))),
  );
  const found = here.rows.map((row) => text(row.map((value, at) => shown(value, here.types[at]))));
  const [a, b] = [expected.sort(), found.sort()];
  const at = a.length === b.length ? a.findIndex((row, i) => row !== b[i]) : 0;
  return at === -1 ? null : `natively ${a[at] ?? '(no row)'}, here ${b[at] ?? '(no row)'}`;
}

/** Runs the statements of a case. */
async function runCase(connect, statements, total, report) {
  const databases = new Map();
  try {
    for (const native of statements) {
      if (!databases.has(native.db)) {
        databases.set(native.db, await connect('memory://', OPTIONS));
      }
      const here = await answerOf(databases.get(native.db), native.sql);
      total.statements++;
      const mayDiffer =
        VARIES.test(native.sql) || MAY_DIFFER.has(native.error) || MAY_DIFFER.has(here.error);
      // What ends the engine is always wrong.
      const isDead = here.error === 'closed' || here.error === 'corrupt' || here.error === 'io';
      const what = isDead
        ? `the engine answers ${here.error}: ${here.message}`
        : difference(native, here);
      if (what !== null && (isDead || !mayDiffer)) {
        total.differing++;
        report(`${native.sql}\n    ${what}`);
      }
      total.left += Number(mayDiffer);
      if (isDead || (what !== null && mayDiffer && changes(native.sql))) {
        // From here on the two databases may have different rows.
        return;
      }
    }
  } finally {
    for (const db of databases.values()) {
      await db.close().catch(() => {});
    }
  }
}

const changes = (sql) => !/^\s*(select|with|values|explain|show|describe|table)\b/i.test(sql);

/** Runs cases of all targets; answers how many statements differ. */
export async function fuzzWasm({ count = CASES, from = 0, targets = TARGETS } = {}) {
  const { connect } = await import(pathToFileURL(path.join(root, 'bindings/js/dist/node.js')).href);
  const total = { cases: 0, statements: 0, left: 0, differing: 0 };
  for (const name of targets) {
    let seed = from;
    for await (const statements of cases(name, from, from + count)) {
      const report = (text) => {
        if (total.differing <= SHOWN) {
          console.log(`  ${name}, case ${seed}: ${text}`);
        }
      };
      await runCase(connect, statements, total, report);
      total.cases++;
      seed++;
    }
  }
  const figures = Object.entries(total).map(([name, value]) => `${name}=${value}`);
  console.log(`fuzz-wasm: ${figures.join(' ')}`);
  return total;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (word, otherwise) =>
    process.argv.includes(word) ? process.argv[process.argv.indexOf(word) + 1] : otherwise;
  await main(async () => {
    const one = option('--target', undefined);
    const { differing } = await fuzzWasm({
      count: Number(option('--cases', CASES)),
      from: Number(option('--from', 0)),
      targets: one === undefined ? TARGETS : [one],
    });
    if (differing > 0) {
      throw new Failure(`${differing} statements differ`);
    }
  });
}
