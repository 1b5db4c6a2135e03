import * as path from 'node:path';
import { expect, test } from 'vitest';
import { emptyFolder, run } from '../testing.js';

test('what is put on the shelf is there, until it is taken', async () => {
  const folder = emptyFolder();
  const pantry = async (...args: string[]) => {
    const script = path.join(import.meta.dirname, 'main.mjs');
    return (await run(process.execPath, [script, folder, ...args])).trimEnd().split('\n');
  };
  expect(await pantry('put', 'flour', '3')).toEqual([
    'migrated 2026-11-01-shelves',
    'migrated 2026-11-20-history',
    'flour: 3',
  ]);
  expect(await pantry('put', 'flour', '2')).toEqual(['flour: 5']);
  expect(await pantry('put', 'salt', '1')).toEqual(['salt: 1']);
  expect(await pantry('take', 'flour', '4')).toEqual(['flour: 1']);
  expect(await pantry('take', 'flour', '4')).toEqual(['not enough flour']);
  await expect(pantry('take', 'sugar', '1')).rejects.toThrow('there is no sugar');
  expect(await pantry()).toEqual(['flour: 1, 3 changes', 'salt: 1, 1 changes']);
});
