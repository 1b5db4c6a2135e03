/**
 * Builds web/tpch for the browser: cargo and wasm-bindgen, into `web/src/generated`. The demo's own module, so
 * it is no part of the engine's build. Does nothing when no input changed.
 */

import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  filesBelow,
  fingerprint,
  main,
  run,
  seconds,
  target,
  upToDate,
  writeStamp,
} from '../tools/lib.mjs';
import { findWasmBindgen } from '../tools/setup.mjs';

const OUT = 'web/src/generated';
const MODULE = 'nacre_web_tpch';
const STAMP = `${OUT}/.stamp`;
const OUTPUTS = [`${MODULE}.js`, `${MODULE}.d.ts`, `${MODULE}_bg.wasm`].map(
  (file) => `${OUT}/${file}`,
);

export async function buildTpch() {
  const hash = fingerprint(filesBelow('web/tpch', 'web/build-tpch.mjs'));
  if (upToDate(STAMP, hash, OUTPUTS)) {
    return;
  }
  const started = Date.now();
  console.log('build: the TPC-H generator for the demo');
  await run('cargo', [
    'build',
    '-q',
    '-p',
    'nacre-web-tpch',
    '--profile',
    'wasm',
    '--target',
    'wasm32-unknown-unknown',
  ]);
  const compiled = path.join(target, 'wasm32-unknown-unknown/wasm', `${MODULE}.wasm`);
  // Its advice about wasm-opt is for the engine, where size matters; this module is 80 KB.
  await run(findWasmBindgen() ?? 'wasm-bindgen', ['--target', 'web', '--out-dir', OUT, compiled], {
    quiet: true,
  });
  writeStamp(STAMP, hash);
  console.log(`build: the TPC-H generator took ${seconds(Date.now() - started)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(buildTpch);
}
