/** Prints how large the engine is, raw and compressed, and fails above the budget. */

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { buildPackage } from './build.mjs';
import { Failure, main, root } from './lib.mjs';
import { setup } from './setup.mjs';

/** The two files of the engine, and the most bytes with Brotli of the first and of both. */
const FILES = ['nacre_bg.wasm', 'nacre_more.wasm'];
export const FIRST_LIMIT = 600_000;
export const WHOLE_LIMIT = 1_300_000;

/** Prints the sizes; throws when a budget is exceeded. */
export function printSize() {
  const [first, more] = FILES.map(sizesOf);
  for (const [name, { raw, gzip, brotli }] of [
    ['loaded first', first],
    ['all', sum(first, more)],
  ]) {
    const text = Object.entries({ raw, gzip, 'brotli-11': brotli }).map(
      ([kind, bytes]) => `${kind} ${(bytes / 1e6).toFixed(3)} MB`,
    );
    console.log(`engine, ${name}: ${text.join(', ')}`);
  }
  check('what is loaded first', first.brotli, FIRST_LIMIT);
  check('the engine', first.brotli + more.brotli, WHOLE_LIMIT);
}

function sizesOf(name) {
  const wasm = fs.readFileSync(path.join(root, 'bindings/js/dist', name));
  return {
    raw: wasm.length,
    gzip: gzipSync(wasm, { level: 9 }).length,
    brotli: brotliSize(wasm),
  };
}

/** Sizes by hash of the contents: compressing the engine takes seconds. */
const known = new Map();

/** Size of some bytes with the best compression of Brotli. */
export function brotliSize(bytes) {
  const hash = createHash('sha256').update(bytes).digest('hex');
  if (!known.has(hash)) {
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
    known.set(hash, brotliCompressSync(bytes, { params }).length);
  }
  return known.get(hash);
}

function sum(a, b) {
  return { raw: a.raw + b.raw, gzip: a.gzip + b.gzip, brotli: a.brotli + b.brotli };
}

function check(what, bytes, limit) {
  if (bytes > limit) {
    throw new Failure(`${what} is too large: ${bytes} bytes with Brotli, at most ${limit}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup();
    await buildPackage();
    printSize();
  });
}
