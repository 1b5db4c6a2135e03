/**
 * Builds web/tpch, the demo's generator of TPC-H rows, for the browser into `web/src/generated`. A
 * module of its own, so that the engine does not carry it. Does nothing when no input changed.
 */

import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bindgen } from '../tools/bindgen.mjs';
import {
  filesBelow,
  fingerprint,
  main,
  root,
  run,
  seconds,
  target,
  upToDate,
  writeStamp,
} from '../tools/lib.mjs';

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
    'wasm-quick',
    '--target',
    'wasm32-unknown-unknown',
  ]);
  const compiled = path.join(target, 'wasm32-unknown-unknown/wasm-quick', `${MODULE}.wasm`);
  await bindgen(compiled, path.join(root, OUT), MODULE);
  writeStamp(STAMP, hash);
  console.log(`build: the TPC-H generator took ${seconds(Date.now() - started)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(buildTpch);
}
