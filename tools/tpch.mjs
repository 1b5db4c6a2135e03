/**
 * `npm run tpch -- --scale 1 --verify FOLDER [--threads N] [--repeat N] [--query N]`: generates
 * TPC-H into a fresh folder, runs the 22 queries of FOLDER/queries and compares with
 * FOLDER/answers. Prints a line a query, then `tpch: right=22 of 22`; fails otherwise.
 */

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { Failure, main, run, target } from './lib.mjs';

await main(async () => {
  const given = process.argv.slice(2);
  if (!given.includes('--verify')) {
    throw new Failure('npm run tpch needs --verify FOLDER, with queries/ and answers/ in it');
  }
  await run('cargo', ['build', '-q', '--release', '-p', 'nacre-tpch']);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-tpch-'));
  try {
    const command = path.join(
      target,
      'release',
      process.platform === 'win32' ? 'nacre-tpch.exe' : 'nacre-tpch',
    );
    const { status } = spawnSync(command, [path.join(folder, 'db'), ...given], {
      stdio: 'inherit',
    });
    process.exitCode = status ?? 1;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
