/** Python packages of the benches: peers and generators of data, installed once into the target folder. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { Failure, probe, run, target } from './lib.mjs';

/** DuckDB in the version of DuckDB-Wasm, which reads its files. */
const PACKAGES = ['datafusion==55.0.0', 'duckdb==1.4.3', 'tpchgen-cli==4.0.0'];

/** The programs: Python with the packages, and TPC-H's generator. */
export async function python() {
  const folder = path.join(target, 'bench', 'python');
  const file = path.join(folder, 'bin', 'python3');
  const stamp = path.join(folder, PACKAGES.join('-'));
  if (!fs.existsSync(stamp)) {
    if (probe('python3', ['--version']) === null) {
      throw new Failure('the peer needs Python 3');
    }
    console.log('installing the peers and the generator of their rows');
    await run('python3', ['-m', 'venv', '--clear', folder], { quiet: true });
    await run(file, ['-m', 'pip', 'install', '-q', ...PACKAGES], { quiet: true });
    fs.writeFileSync(stamp, '');
  }
  return { file, tpchgen: path.join(folder, 'bin', 'tpchgen-cli') };
}
