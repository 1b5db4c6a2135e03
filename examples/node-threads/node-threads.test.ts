import * as path from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder, run } from '../testing.js';
import { ThreadedDatabase } from './threaded.mjs';

test('a worker thread has the database, and a second run finds its rows', async () => {
  const folder = emptyFolder();
  const main = path.join(import.meta.dirname, 'main.mjs');
  for (const readings of [8_000, 16_000]) {
    const lines = (await run(process.execPath, [main, folder, String(readings)])).split('\n');
    expect(lines[0]).toBe(`sensor 0: ${readings / 8} readings, 15.0 °C`);
    expect(lines[7]).toBe(`sensor 7: ${readings / 8} readings, 22.0 °C`);
    expect(lines[8]).toMatch(/^longest pause of the main thread: \d+ ms$/);
  }
});

test('errors keep their kind, and two threads cannot have one folder', async () => {
  const folder = emptyFolder();
  const first = new ThreadedDatabase(folder);
  await expect(first.query('select * from nothing')).rejects.toMatchObject({ kind: 'not_found' });
  const second = new ThreadedDatabase(folder);
  await expect(second.query('select 1 as one')).rejects.toMatchObject({
    kind: 'in_use',
  });
  await first.close();
  const third = new ThreadedDatabase(folder);
  expect(await third.query('select 1 as one')).toEqual([{ one: 1 }]);
  await third.close();
});
