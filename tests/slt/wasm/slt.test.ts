/**
 * sqllogictest through the WebAssembly build: the scripts of `tests/slt/cases` that need one
 * connection, and a few files of SQLite's corpus if it is beside the repository. Natively all of
 * them run, in every mode.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { connect } from 'nacredb';
import { afterAll, expect, test } from 'vitest';
import { runScript } from './script.js';

const CASES = path.resolve(import.meta.dirname, '../cases');
const CORPUS = path.resolve(import.meta.dirname, '../../../../shared/corpora/sqllogictest');
/** Files of the corpus: one of each kind, small enough for every run. */
const SELECTION = [
  'select/select1.test',
  'select/select3.test',
  'evidence/slt_lang_aggfunc.test',
  'evidence/slt_lang_droptable.test',
];

const total = { passed: 0, failed: 0, skipped: new Map<string, number>() };

const needsMore = (text: string) => /^(connection |begin|statement ok\nset )/m.test(text);
const read = (file: string) => fs.readFileSync(file, 'utf8');
const own = fs
  .readdirSync(CASES)
  .filter((name) => /\.(slt|test)$/.test(name))
  .map((name) => path.join(CASES, name))
  .filter((file) => !needsMore(read(file)));
const corpus = SELECTION.map((name) => path.join(CORPUS, name)).filter((file) => fs.existsSync(file));

test.each([...own, ...corpus])('%s', { timeout: 60_000 }, async (file) => {
  const db = await connect('memory://', { types: { date: 'string', json: 'string' } });
  try {
    const report = await runScript(db, read(file), file.endsWith('.test'));
    total.passed += report.passed;
    total.failed += report.failures.length;
    for (const [reason, count] of report.skipped) {
      total.skipped.set(reason, (total.skipped.get(reason) ?? 0) + count);
    }
    expect(report.failures).toEqual([]);
    expect(report.passed).toBeGreaterThan(0);
  } finally {
    await db.close();
  }
});

afterAll(() => {
  const skipped = [...total.skipped].map(([reason, count]) => `\n  skipped ${count}: ${reason}`).join('');
  const sum = [...total.skipped.values()].reduce((a, b) => a + b, 0);
  console.log(
    `slt through WebAssembly:${skipped}\n  slt: passed=${total.passed} failed=${total.failed} skipped=${sum}`,
  );
});
