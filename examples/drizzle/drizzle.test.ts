import * as path from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder, root, run } from '../testing.js';

const folder = import.meta.dirname;

test('runs are ranked, and the last ones listed', async () => {
  const runs = emptyFolder();
  const log = async (...args: string[]) =>
    (await run(process.execPath, [path.join(folder, 'main.mjs'), runs, ...args])).trimEnd();
  await log('add', 'Ada', '2026-11-20', '10.5', '58');
  await log('add', 'Bob', '2026-11-20', '21.1', '120');
  await log('add', 'Ada', '2026-11-21', '5', '25');
  await log('add', 'Ada', '2026-11-19', '4.5', '27');
  expect((await log()).split('\n')).toEqual([
    'Bob: 21.1 km at 5.69 min/km',
    'Ada: 20 km at 5.5 min/km',
    'Ada: 2026-11-21 5 km, 2026-11-20 10.5 km',
    'Bob: 2026-11-20 21.1 km',
  ]);
});

test('the migrations are those of the schema', async () => {
  const kit = path.join(root, 'node_modules/drizzle-kit/bin.cjs');
  const output = await run(process.execPath, [kit, 'generate'], {}, folder);
  expect(output).toContain('No schema changes');
});
