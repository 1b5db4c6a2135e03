import * as path from 'node:path';
import { expect, test } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';
import { emptyFolder, run } from '../testing.js';

test('a reader follows the writer, and the bucket outlives the folder', async () => {
  const s3 = await startS3();
  const env = {
    BLOBS_URL: 's3://bucket/weather',
    BLOBS_ENDPOINT: s3.endpoint,
    AWS_ACCESS_KEY_ID: 'tester',
    AWS_SECRET_ACCESS_KEY: 'not-a-secret',
  };
  const script = (name: string) => path.join(import.meta.dirname, name);
  const readerEnded = run(process.execPath, [script('./reader.mjs'), '36'], env);
  const writer = (rounds: string) =>
    run(process.execPath, [script('./writer.mjs'), emptyFolder(), rounds], env);
  try {
    expect(await writer('7')).toBe('21 measurements are in the bucket\n');
    // A folder of its own, as after the loss of the first.
    expect(await writer('5')).toBe('36 measurements are in the bucket\n');
    const shown = await readerEnded;
    expect(shown).toMatch(/as of \d+\.\d s ago:/);
    expect(shown).toMatch(/ {2}cape: 12, at most \d+/);
  } finally {
    await s3.stop();
  }
}, 60_000);
