/**
 * Installs what is missing to build and test: the wasm target, wasm-bindgen's command line in exactly the
 * version of Cargo.lock, npm dependencies, a Chromium. What is there in the right version is used.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureChromium } from './chromium.mjs';
import {
  Failure,
  fingerprint,
  main,
  ownTools,
  probe,
  root,
  run,
  upToDate,
  writeStamp,
} from './lib.mjs';

const NPM_STAMP = 'node_modules/.nacre-stamp';

/** Everything a build needs; with `browser` also what tests and the demo's check need. */
export async function setup({ browser = false } = {}) {
  await rust();
  await wasmBindgen();
  await npm();
  if (browser) {
    await ensureChromium();
  }
}

async function rust() {
  const version = probe('cargo', ['--version']);
  if (version === null) {
    throw new Failure('Rust is missing: install it from https://rustup.rs');
  }
  const sysroot = probe('rustc', ['--print', 'sysroot']) ?? '';
  if (!fs.existsSync(path.join(sysroot, 'lib/rustlib/wasm32-unknown-unknown'))) {
    console.log('setup: adding the wasm32-unknown-unknown target');
    await run('rustup', ['target', 'add', 'wasm32-unknown-unknown']);
  }
  for (const [component, command] of [
    ['rustfmt', 'fmt'],
    ['clippy', 'clippy'],
  ]) {
    if (probe('cargo', [command, '--version']) === null) {
      console.log(`setup: adding ${component}`);
      await run('rustup', ['component', 'add', component]);
    }
  }
}

/** The version of wasm-bindgen in Cargo.lock: library and command line must be the same. */
function wasmBindgenVersion() {
  const lock = fs.readFileSync(path.join(root, 'Cargo.lock'), 'utf8');
  const match = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock);
  if (match === null) {
    throw new Failure('Cargo.lock does not name a version of wasm-bindgen');
  }
  return match[1];
}

/** Path of the right wasm-bindgen, or null. */
export function findWasmBindgen() {
  const wanted = `wasm-bindgen ${wasmBindgenVersion()}`;
  const home = process.env.CARGO_HOME ?? path.join(process.env.HOME ?? '', '.cargo');
  const places = [
    path.join(ownTools, 'bin/wasm-bindgen'),
    'wasm-bindgen',
    path.join(home, 'bin/wasm-bindgen'),
  ];
  return places.find((place) => probe(place, ['--version']) === wanted) ?? null;
}

async function wasmBindgen() {
  if (findWasmBindgen() !== null) {
    return;
  }
  const version = wasmBindgenVersion();
  console.log(`setup: installing wasm-bindgen-cli ${version} (a few minutes, once)`);
  // Without --locked: a dependency its author locked is not available everywhere.
  await run('cargo', ['install', 'wasm-bindgen-cli', '--version', version, '--root', ownTools]);
}

async function npm() {
  const manifests = [
    'package.json',
    'bindings/js/package.json',
    'web/package.json',
    'package-lock.json',
  ];
  const present = manifests.filter((file) => fs.existsSync(path.join(root, file)));
  if (upToDate(NPM_STAMP, fingerprint(present))) {
    return;
  }
  console.log('setup: installing npm dependencies');
  const quiet = ['--no-audit', '--no-fund', '--loglevel', 'error'];
  try {
    await run('npm', ['ci', ...quiet], { quiet: true });
  } catch {
    // The lock file does not fit the manifests, as after editing one.
    await run('npm', ['install', ...quiet]);
  }
  writeStamp(NPM_STAMP, fingerprint(present));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await setup({ browser: true });
    console.log('setup: everything is there');
  });
}
