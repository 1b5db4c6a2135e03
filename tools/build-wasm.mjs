/**
 * Builds the engine for JavaScript: cargo, what is cut out, the glue, wasm-opt. The result is
 * `bindings/wasm/pkg`: nacre.js, nacre.d.ts and nacre_bg.wasm. Does nothing when no input changed.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bindgen } from './bindgen.mjs';
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
import { setup } from './setup.mjs';

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

/** The glue is made from a section that full stripping removes; wasm-opt removes it in the end. */
const KEEP_FEATURES = {
  CARGO_PROFILE_WASM_STRIP: 'debuginfo',
  CARGO_PROFILE_WASM_QUICK_STRIP: 'debuginfo',
};

/**
 * The standard library is compiled with the engine, for size: its sorts, searches and formatting
 * are smaller than those of the compiled one. Cargo knows the option, but its form may still
 * change, hence the variable; the compiler's version is fixed in rust-toolchain.toml.
 */
const SMALL_STD = ['-Zbuild-std=std,panic_abort', '-Zbuild-std-features=optimize_for_size'];
const UNSTABLE_OPTIONS = { RUSTC_BOOTSTRAP: '1' };

/** Leaves in the module what refers to what, so that unneeded code can be cut out. */
const RELOCATIONS = ['--', '-C', 'link-arg=--emit-relocs'];
/** The functions that are cut out, and why. */
const CUT = 'tools/divide/cut.txt';

/** The loops over columns are written for the compiler to vectorise. */
const SIMD = '-C target-feature=+simd128';
/** A panic says what is wrong, in words that stand once in the code, and not in which file. */
const NO_PLACES = '-Z location-detail=none';

/**
 * Builds what is shipped or, with `quick`, an engine that is larger and a little slower but takes
 * half the time. An engine of the shipped kind serves for both. The caller holds the lock `build`.
 */
export async function buildWasm({ quick = false } = {}) {
  const inputs = filesBelow(
    'engine',
    'bindings/wasm',
    'Cargo.toml',
    'Cargo.lock',
    'tools/bindgen',
    'tools/bindgen.mjs',
    'tools/build-wasm.mjs',
    'tools/divide/src/cut',
    CUT,
  );
  const profiles = quick ? ['wasm-quick', 'wasm'] : ['wasm'];
  if (profiles.some((profile) => upToDate(STAMP, fingerprint(inputs, profile), OUTPUTS))) {
    return;
  }
  const [profile] = profiles;
  // Of what is compiled: a file may change meanwhile.
  const hash = fingerprint(inputs, profile);
  const started = Date.now();
  console.log(`build: the engine for WebAssembly, profile ${profile}`);
  const build = ['rustc', '-q', '-p', 'nacre-module', '--profile', profile];
  const flags = quick ? SIMD : `${SIMD} ${NO_PLACES}`;
  await run(
    'cargo',
    [
      ...build,
      '--target',
      'wasm32-unknown-unknown',
      ...(quick ? [] : [...SMALL_STD, ...RELOCATIONS]),
    ],
    {
      env: {
        ...KEEP_FEATURES,
        ...(quick ? {} : UNSTABLE_OPTIONS),
        CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: flags,
      },
    },
  );
  const compiled = path.join(target, `wasm32-unknown-unknown/${profile}/nacre_module.wasm`);
  fs.rmSync(path.join(root, NEXT), { recursive: true, force: true });
  await bindgen(quick ? compiled : await cut(compiled), path.join(root, NEXT), 'nacre');
  if (!quick) {
    await optimize(path.join(root, NEXT, 'nacre_bg.wasm'));
  }
  replace(PKG, NEXT);
  writeStamp(STAMP, hash);
  console.log(`build: the engine took ${seconds(Date.now() - started)}`);
}

/** Cuts out what nothing needs. */
async function cut(compiled) {
  const needed = `${compiled}.cut`;
  const tool = ['run', '-q', '-p', 'nacre-divide', '--profile', 'tool', '--'];
  await run('cargo', [...tool, 'cut', compiled, path.join(root, CUT), needed]);
  return needed;
}

/**
 * Measured: -O2 is no larger than -Oz once compressed, and -O3 after it, not instead, saves 0.3 %.
 * Functions in the order of their names stand beside functions like them, which compress 1.5 % better.
 * One alignment for all loads and stores, a hint that engines do not use, saves 0.5 %.
 */
async function optimize(file) {
  const enable = FEATURES.map((feature) => `--enable-${feature}`);
  const optimized = `${file}.opt`;
  await run(bin('wasm-opt'), [
    '-O2',
    '-O3',
    ...enable,
    '--dealign',
    '--reorder-functions-by-name',
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
