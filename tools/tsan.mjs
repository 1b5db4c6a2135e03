/**
 * `npm run tsan`: tests with threads under ThreadSanitizer, on nightly Rust, which is added if it
 * is missing. Not a part of `npm test`, because it builds the standard library too.
 * `docs/TESTING.md` says what it finds and what not.
 *
 * `npm run tsan -- CRATE…` takes only these crates.
 */

import * as path from 'node:path';
import { Failure, addNightly, main, probe, run, target } from './lib.mjs';

/** Crates whose tests have threads, and which of their tests do. */
const RUNS = [
  { name: 'nacre-rowstore', filter: [] },
  { name: 'nacre-log', filter: [] },
  { name: 'nacre-table', filter: [] },
];
const TRIPLE = 'x86_64-unknown-linux-gnu';

await main(async () => {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !RUNS.some((one) => one.name === name));
  if (unknown.length > 0) {
    throw new Failure(
      `no threads in ${unknown.join(', ')}; crates: ${RUNS.map((one) => one.name).join(', ')}`,
    );
  }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Failure('tsan: only on Linux, x86-64');
  }
  if (probe('cargo', ['+nightly', '--version']) === null) {
    console.log('tsan: adding the nightly toolchain');
    await addNightly('ThreadSanitizer', ['rust-src']);
  }
  for (const { name, filter } of RUNS.filter(
    (one) => wanted.length === 0 || wanted.includes(one.name),
  )) {
    console.log(`▸ ${name}`);
    // The standard library is built too: what it synchronises must be seen.
    const args = [
      '+nightly',
      'test',
      '-Zbuild-std',
      '--target',
      TRIPLE,
      '-p',
      name,
      '--lib',
      ...filter,
    ];
    await run('cargo', args, {
      env: {
        RUSTFLAGS: '-Zsanitizer=thread',
        TSAN_OPTIONS: 'halt_on_error=1',
        // A folder of its own: nothing else is built with the sanitizer.
        CARGO_TARGET_DIR: path.join(target, 'tsan'),
      },
    });
  }
});
