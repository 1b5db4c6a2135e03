/**
 * The small npm packages on top of `nacredb`: each folder of `bindings` that is compiled from
 * TypeScript, file by file, into its `dist`. Does nothing when no input changed.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { bin, filesBelow, fingerprint, replace, root, run, upToDate, writeStamp } from './lib.mjs';

/** Folders below `bindings`; the package is called `nacredb-` and this name. */
export const SMALL_PACKAGES = ['kysely', 'drizzle', 'react'];

/** Builds all of them. The types of `nacredb` must be built. */
export async function buildSmallPackages() {
  for (const name of SMALL_PACKAGES) {
    await build(`bindings/${name}`);
  }
}

async function build(folder) {
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(root, folder, 'LICENSE'));
  const types = filesBelow('bindings/js/src', 'worker/shared');
  const inputs = filesBelow(folder, 'tsconfig.json', 'tools/small-packages.mjs', ...types);
  const hash = fingerprint(inputs);
  const stamp = `${folder}/dist/.stamp`;
  if (upToDate(stamp, hash, [`${folder}/dist/index.js`, `${folder}/dist/index.d.ts`])) {
    return;
  }
  const next = path.join(root, folder, 'dist.next');
  fs.rmSync(next, { recursive: true, force: true });
  await run(bin('tsc'), ['-p', `${folder}/tsconfig.build.json`, '--outDir', next]);
  replace(`${folder}/dist`, `${folder}/dist.next`);
  writeStamp(stamp, hash);
}
