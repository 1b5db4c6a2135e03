/**
 * `examples/rust-embed` as a WASI module, run by Node as a host of files: it writes a folder that the same
 * program finds when it is started again.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Failure, run, target } from './lib.mjs';

const TARGET = 'wasm32-wasip1';
const PROGRAM = 'nacre-example-embed';
/** Arguments, and what the program prints. */
const RUNS = [
  ['record /data/meters 6', /^960 readings, 960 in all\n$/],
  ['record /data/meters 2', /^320 readings, 1280 in all\n$/],
  ['report /data/meters', /^hour .* kWh {2}peak meter\n(2026-06-01 .*\n){8}$/],
  ['latest /data/meters 7', /^meter 7: \d+ W at 2026-06-01 07:45:00\n$/],
];

/** Builds the module and runs it on a folder. */
export async function checkWasi(folder) {
  await run('rustup', ['target', 'add', TARGET], { quiet: true });
  await run('cargo', ['build', '-q', '-p', PROGRAM, '--target', TARGET]);
  const module = path.join(target, TARGET, 'debug', `${PROGRAM}.wasm`);
  const data = path.join(folder, 'wasi');
  fs.mkdirSync(data);
  const host = path.join(folder, 'host.mjs');
  fs.writeFileSync(host, HOST);
  for (const [args, expected] of RUNS) {
    const node = ['--no-warnings', host, pathToFileURL(module).href, data, ...args.split(' ')];
    const printed = await run(process.execPath, node, { quiet: true });
    if (!expected.test(printed)) {
      throw new Failure(`under WASI, ${args} printed:\n${printed}`);
    }
  }
}

const HOST = `import * as fs from 'node:fs';
import { WASI } from 'node:wasi';

const [file, folder, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: ['program', ...args],
  preopens: { '/data': folder },
});
const module = await WebAssembly.compile(fs.readFileSync(new URL(file)));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
`;
