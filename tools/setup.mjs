/**
 * Installs what is missing to build and test: the wasm target, npm dependencies, a Chromium. A tool
 * that is present in the right version is used.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureChromium } from './chromium.mjs';
import { Failure, fingerprint, main, probe, root, run, upToDate, writeStamp } from './lib.mjs';
import { SMALL_PACKAGES } from './small-packages.mjs';

const NPM_STAMP = 'node_modules/.nacre-stamp';

/** Everything a build needs; with `browser` also what tests and the demo's check need. */
export async function setup({ browser = false } = {}) {
  await rust();
  await npm();
  if (browser) {
    await ensureChromium();
  }
}

async function rust() {
  const version = probe('cargo', ['--version']);
  if (version === null) {
    throw new Failure(
      'Rust is missing, or the version in rust-toolchain.toml cannot be installed: https://rustup.rs',
    );
  }
  const sysroot = probe('rustc', ['--print', 'sysroot']) ?? '';
  if (!fs.existsSync(path.join(sysroot, 'lib/rustlib/wasm32-unknown-unknown'))) {
    console.log('setup: adding the wasm32-unknown-unknown target');
    await run('rustup', ['target', 'add', 'wasm32-unknown-unknown']);
  }
  if (!fs.existsSync(path.join(sysroot, 'lib/rustlib/src/rust/library'))) {
    console.log('setup: adding rust-src');
    await run('rustup', ['component', 'add', 'rust-src']);
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

/** Installs the dependencies of the manifests, unless they are there. */
export async function npm() {
  const manifests = [
    'package.json',
    'bindings/js/package.json',
    ...SMALL_PACKAGES.map((name) => `bindings/${name}/package.json`),
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
