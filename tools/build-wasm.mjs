/**
 * Builds the engine for JavaScript: cargo, wasm-bindgen, wasm-opt. The result is `bindings/wasm/pkg`:
 * nacre.js, nacre.d.ts and nacre_bg.wasm. Does nothing when no input changed.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  bin,
  exclusively,
  filesBelow,
  fingerprint,
  main,
  replace,
  root,
  run,
  seconds,
  target,
  upToDate,
  writeStamp,
} from './lib.mjs';
import { findWasmBindgen, setup } from './setup.mjs';

const PKG = 'bindings/wasm/pkg';
const NEXT = 'bindings/wasm/pkg.next';
const STAMP = `${PKG}/.stamp`;
const OUTPUTS = ['nacre.js', 'nacre.d.ts', 'nacre_bg.wasm'].map((file) => `${PKG}/${file}`);
/** What every browser since 2023 has. */
const FEATURES = [
  'bulk-memory',
  'sign-ext',
  'nontrapping-float-to-int',
  'mutable-globals',
  'reference-types',
  'multivalue',
  'simd',
];

/** wasm-bindgen reads from a section that full stripping removes; wasm-opt removes it in the end. */
const KEEP_FEATURES = { CARGO_PROFILE_WASM_STRIP: 'debuginfo' };

/** The loops over columns are written for the compiler to vectorise. */
const SIMD = { CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: '-C target-feature=+simd128' };

/** The parser is recursive: small code has small frames, and a page's stack is what limits nesting. */
const SMALL_PARSER = ['--config', 'profile.wasm.package.sqlparser.opt-level="z"'];

/** The caller holds the lock `build`. */
export async function buildWasm() {
  const inputs = filesBelow(
    'engine',
    'bindings/wasm',
    'Cargo.toml',
    'Cargo.lock',
    'tools/build-wasm.mjs',
  );
  const hash = fingerprint(inputs);
  if (upToDate(STAMP, hash, OUTPUTS)) {
    return;
  }
  const started = Date.now();
  console.log('build: the engine for WebAssembly');
  await run(
    'cargo',
    [
      'build',
      '-q',
      '-p',
      'nacre-wasm',
      '--profile',
      'wasm',
      '--target',
      'wasm32-unknown-unknown',
      ...SMALL_PARSER,
    ],
    { env: { ...KEEP_FEATURES, ...SIMD } },
  );
  const compiled = path.join(target, 'wasm32-unknown-unknown/wasm/nacre_wasm.wasm');
  fs.rmSync(path.join(root, NEXT), { recursive: true, force: true });
  const bindgen = [
    '--target',
    'web',
    '--out-name',
    'nacre',
    '--omit-default-module-path',
    // After a trap a thread without a worker of its own starts the engine afresh.
    '--experimental-reset-state-function',
    '--out-dir',
    NEXT,
    compiled,
  ];
  await run(findWasmBindgen() ?? 'wasm-bindgen', bindgen);
  await optimize(path.join(root, NEXT, 'nacre_bg.wasm'));
  replace(PKG, NEXT);
  writeStamp(STAMP, hash);
  console.log(`build: the engine took ${seconds(Date.now() - started)}`);
}

/** Measured: -O2 is no larger than -Oz once compressed. */
async function optimize(file) {
  const enable = FEATURES.map((feature) => `--enable-${feature}`);
  const optimized = `${file}.opt`;
  await run(bin('wasm-opt'), [
    '-O2',
    ...enable,
    '--strip-debug',
    '--strip-producers',
    '-o',
    optimized,
    file,
  ]);
  fs.renameSync(optimized, file);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup();
    await exclusively('build', buildWasm);
  });
}
