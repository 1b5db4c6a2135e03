/**
 * `npm run demo:check`: builds everything the demo needs, then drives it in Chromium
 * (`web/check.mjs`).
 */

import { buildPackage } from './build.mjs';
import { main, run } from './lib.mjs';
import { setup } from './setup.mjs';

await main(async () => {
  await setup({ browser: true });
  await buildPackage();
  await run(process.execPath, ['web/check.mjs', ...process.argv.slice(2)]);
});
