/** Files in the storage of a Durable Object, against a model. */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { Workers } from '../../tools/workers.mjs';

test('random writes agree with copies in memory, also after opening again', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-files-'));
  const worker = path.join(folder, 'files.mjs');
  await build({
    entryPoints: [path.resolve(import.meta.dirname, './files.mjs')],
    bundle: true,
    format: 'esm',
    outfile: worker,
    logLevel: 'error',
  });
  const workers = await Workers.start(folder, { worker, classes: { TENANT: 'Files' } });
  try {
    for (let seed = 1; seed <= 20; seed++) {
      const { status, body } = await workers.send(null, [], { at: `/?seed=${seed}` });
      expect({ seed, status, body }).toMatchObject({ status: 200, body: expect.any(Array) });
    }
  } finally {
    await workers.stop();
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});
