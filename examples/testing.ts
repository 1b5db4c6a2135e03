/** What the examples' tests share: temporary folders, commands run to their end, and Workers. */

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll } from 'vitest';

/** The repository's root. */
export const root = path.resolve(import.meta.dirname, '..');

const folders: string[] = [];

/** Makes an empty folder, which is removed after the tests of the file. */
export function emptyFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-example-'));
  folders.push(folder);
  return folder;
}

afterAll(() => folders.forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

/**
 * Runs a command and answers its standard output. Fails, with everything it printed, unless it
 * exits with 0.
 */
export function run(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  cwd: string = root,
): Promise<string> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env } });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (errors += data));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0
        ? resolve(output)
        : reject(new Error(`${command} ${args.join(' ')} exited with ${code}\n${output}${errors}`)),
    );
  });
}

/**
 * Builds a binary of the workspace and answers its path. Not `-p`: that would build the engine again, without what
 * others ask of it.
 */
export async function cargoBinary(name: string): Promise<string> {
  await run('cargo', ['build', '-q', '--bin', name]);
  const target = path.resolve(root, process.env['CARGO_TARGET_DIR'] ?? 'target');
  return path.join(target, 'debug', process.platform === 'win32' ? `${name}.exe` : name);
}

/** Starts a Worker in Cloudflare's runtime, bundled as its tool does it, with options of the runtime. */
export async function startWorker(program: string, options: object = {}): Promise<Miniflare> {
  const out = emptyFolder();
  await build({
    entryPoints: [program],
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
    loader: { '.wasm': 'copy' },
    alias: { nacredb: path.join(root, 'bindings/js/dist/edge.js') },
    outdir: out,
    logLevel: 'error',
  });
  const main = 'worker.js';
  const names = fs.readdirSync(out).filter((name) => name !== main);
  const modules = [main, ...names].map((name) => ({
    type: name.endsWith('.wasm') ? ('CompiledWasm' as const) : ('ESModule' as const),
    path: name,
    contents: fs.readFileSync(path.join(out, name)),
  }));
  const runtime = new Miniflare({ modules, compatibilityDate: '2026-03-01', ...options });
  await runtime.ready;
  return runtime;
}
