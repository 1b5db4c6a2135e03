/**
 * `npm run miri`: the crate that has unsafe code, interpreted by Miri on nightly Rust, which is
 * added if it is missing. Not a part of `npm test`, because it takes minutes. `docs/TESTING.md`
 * says what it finds and what not.
 */

import { addNightly, main, probe, run } from './lib.mjs';

/**
 * Our own code under Miri's rules for aliasing; then all of the crate without them, because
 * crossbeam's skiplist and epochs do not follow them, and leave garbage when the process ends.
 * Addresses in row locks are exposed on purpose (engine/rowstore/src/holder.rs).
 */
const RUNS = [
  { name: 'nodes', filter: ['tests::nodes'], flags: '-Zmiri-tree-borrows' },
  {
    name: 'whole rowstore',
    filter: [],
    flags: '-Zmiri-disable-stacked-borrows -Zmiri-ignore-leaks',
  },
];

await main(async () => {
  if (probe('cargo', ['+nightly', 'miri', '--version']) === null) {
    console.log('miri: adding it to the nightly toolchain');
    await addNightly('Miri', ['rust-src', 'miri']);
  }
  for (const { name, filter, flags } of RUNS) {
    console.log(`▸ ${name}`);
    await run('cargo', ['+nightly', 'miri', 'test', '-p', 'nacre-rowstore', '--lib', ...filter], {
      env: { MIRIFLAGS: `${flags} -Zmiri-permissive-provenance` },
    });
  }
});
