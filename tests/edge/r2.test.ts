/** Blob stores in a bucket of R2, in Cloudflare's runtime. */

import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { expect, test } from 'vitest';

test.for(['plain', 'sealed'])(
  'a bucket keeps the contract (%s)',
  { timeout: 120_000 },
  async (kind) => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('./r2-contract.ts', import.meta.url))],
      bundle: true,
      format: 'esm',
      write: false,
    });
    const runtime = new Miniflare({
      modules: true,
      script: outputFiles[0]!.text,
      compatibilityDate: '2026-03-01',
      r2Buckets: ['BUCKET'],
      handleRuntimeStdio: () => {},
    });
    try {
      const answer = await runtime.dispatchFetch(`http://localhost/${kind}`);
      expect(await answer.text()).toBe('kept');
    } finally {
      await runtime.dispose();
    }
  },
);
