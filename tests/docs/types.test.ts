/**
 * The examples of the documentation and their extraction are correct TypeScript, as strict as it
 * can be.
 */

import { spawnSync } from 'node:child_process';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { fences, moduleOf } from './extract';

const root = path.resolve(import.meta.dirname, '../..');

test('every example type-checks with --strict', { timeout: 120_000 }, () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', import.meta.dirname], {
    encoding: 'utf8',
  });
  expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
});

test('a fence becomes a module, and its comments what it prints', () => {
  const text = [
    '/**',
    ' * ```ts',
    " * import { tableFromIPC } from 'apache-arrow';",
    ' * const { rows } = await db.query(sql`select ${1} as n`);',
    ' * console.log(rows); // [ { n: 1 } ]',
    ' * ```',
    ' */',
  ].join('\n');
  const [example] = fences('a.ts', text);
  expect(example).toMatchObject({
    source: 'a.ts:3',
    runtime: 'everywhere',
    printed: ['[ { n: 1 } ]'],
  });
  const module = moduleOf(example!, 'one');
  expect(module).toContain("import { sql } from 'nacredb';");
  expect(module).toContain('await using db = await visits();');
  expect(fences('b.md', "```js\nconnect('opfs://app')\n```\n")[0]).toMatchObject({
    runtime: 'browser',
  });
  expect(fences('b.md', "```js\nconnect('./app')\n```\n")[0]).toMatchObject({ runtime: 'node' });
});
