/**
 * `npm start`: installs what is missing, builds, and serves the demo, with the documentation at
 * `/docs/`; Vite prints its address.
 */

import { buildPackage } from './build.mjs';
import { buildDocs } from './docs.mjs';
import { main, run } from './lib.mjs';
import { setup } from './setup.mjs';

await main(async () => {
  await setup();
  await buildPackage({ quick: true });
  await buildDocs();
  await run('npm', ['run', 'dev', '--silent', '-w', 'web', '--', ...process.argv.slice(2)]);
});
