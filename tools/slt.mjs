/** `npm run slt -- PATH…`: runs sqllogictest files or folders natively, with a release build.
 * `--dialect duckdb` reads the tests of DuckDB. */

import { main, run } from './lib.mjs';

await main(async () => {
  const args = process.argv.slice(2);
  await run('cargo', [
    'run',
    '-q',
    '--release',
    '-p',
    'nacre-slt',
    '--',
    ...(args.length > 0 ? args : ['tests/slt/cases']),
  ]);
});
