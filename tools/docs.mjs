/**
 * `npm run docs`: builds the documentation's site into `docs/.vitepress/dist`, and checks that every
 * link of it leads to a page and a heading that is there. `--dev` serves the pages while they are
 * written.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  bin,
  Failure,
  filesBelow,
  fingerprint,
  main,
  root,
  run,
  seconds,
  target,
  upToDate,
  writeStamp,
} from './lib.mjs';
import { brokenLinks } from './docs/links.mjs';
import { npm } from './setup.mjs';

/** Where the site is built, from the root. Its configuration is `docs/.vitepress/config.mjs`. */
export const SITE = 'docs/.vitepress/dist';
const STAMP = path.relative(root, path.join(target, 'docs.stamp'));
/** Where the site is served; `DOCS_BASE` sets another path. */
const BASE = process.env.DOCS_BASE ?? '/docs/';

/** Builds the site unless it is there already. */
export async function buildDocs() {
  const inputs = [
    ...filesBelow('docs', 'bindings/js/src', 'bindings/js/README.md', 'worker/shared'),
    ...filesBelow('tools/docs.mjs', 'tools/docs', 'web/public', 'package-lock.json'),
  ].filter((file) => !/^docs\/(reference\/api|\.vitepress\/(cache|\.temp))\//.test(file));
  const hash = fingerprint(inputs, BASE);
  if (upToDate(STAMP, hash, [`${SITE}/index.html`])) {
    return;
  }
  const started = Date.now();
  await writeReference();
  await run(bin('vitepress'), ['build', 'docs'], { quiet: true });
  const broken = brokenLinks(path.join(root, SITE), BASE);
  if (broken.length > 0) {
    fs.rmSync(path.join(root, STAMP), { force: true });
    throw new Failure(`the site has broken links:\n${broken.join('\n')}`);
  }
  writeStamp(STAMP, hash);
  console.log(`docs: the site took ${seconds(Date.now() - started)}, in ${SITE}`);
}

/** Writes the pages that are made from the sources. Imported late: the parser is a dependency. */
async function writeReference() {
  const { writeApi } = await import('./docs/api.mjs');
  writeApi(root);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    await npm();
    if (process.argv.includes('--dev')) {
      await writeReference();
      await run(bin('vitepress'), ['dev', 'docs', '--host', '127.0.0.1']);
    } else {
      await buildDocs();
    }
  });
}
