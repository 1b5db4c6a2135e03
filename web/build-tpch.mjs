// Builds web/tpch to WebAssembly and its JavaScript glue into web/src/generated.
//
// Owns that one step. Does nothing when the output is newer than every source, so `dev` and `build` start at once.
// The profile and the tool are the engine's; what differs is that this module is the demo's own.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = dirname(fileURLToPath(import.meta.url));
const root = resolve(web, '..');
const out = join(web, 'src', 'generated');
const crate = 'nacre-web-tpch';
const module = 'nacre_web_tpch';

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
const sources = [
  join(web, 'tpch', 'Cargo.toml'),
  ...readdirSync(join(web, 'tpch', 'src')).map((name) => join(web, 'tpch', 'src', name)),
];
const built = modified(join(out, `${module}_bg.wasm`));

if (built > Math.max(...sources.map(modified))) {
  console.log('tpch: up to date');
} else {
  const run = (command, args) => execFileSync(command, args, { cwd: root, stdio: 'inherit' });
  const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
  console.log('tpch: building the data generator');
  run('cargo', ['build', '-p', crate, '--profile', 'wasm', '--target', 'wasm32-unknown-unknown']);
  mkdirSync(out, { recursive: true });
  run('wasm-bindgen', [
    join(target, 'wasm32-unknown-unknown', 'wasm', `${module}.wasm`),
    '--target', 'web', '--out-dir', out,
  ]);
  const bytes = statSync(join(out, `${module}_bg.wasm`)).size;
  console.log(`tpch: ${(bytes / 1024).toFixed(0)} KB`);
}
