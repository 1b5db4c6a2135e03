import * as path from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder, run } from '../testing.js';

test('books are added once, read in transactions, and counted by author', async () => {
  const folder = emptyFolder();
  const books = async (...args: string[]) => {
    const script = path.join(import.meta.dirname, 'main.mjs');
    return (await run(process.execPath, [script, folder, ...args])).trimEnd();
  };
  expect(await books('add', 'Shells', 'A. Nacre')).toBe('book 1');
  expect(await books('add', 'Pearls', 'B. Oyster')).toBe('book 2');
  expect(await books('add', 'Shells', 'C. Mussel')).toBe('book 1');
  await books('read', 'Shells', '2026-11-20', '4');
  await books('read', 'Shells', '2026-11-21', '5');
  await expect(books('read', 'Nothing', '2026-11-21', '5')).rejects.toThrow('there is no book');
  expect((await books()).split('\n')).toEqual([
    'C. Mussel: 2 readings, 4.5 stars',
    'B. Oyster: 0 readings, no stars',
  ]);
});
