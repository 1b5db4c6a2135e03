/**
 * Three runs of tests: in Node, in a page of a real Chromium, and in Node driving several tabs of one.
 * The tests of the package's API are the same files in Node and in the browser; they import the built package.
 */

import { playwright } from '@vitest/browser-playwright';
import { defineConfig } from 'vitest/config';
import { findChromium, launchOptions } from './tools/chromium.mjs';

const TABS = 'tests/browser/**/*.tabs.test.ts';
const IN_BROWSER = ['worker/browser/**/*.test.ts', 'tests/browser/**/*.browser.test.ts'];
const IN_NODE = ['worker/node/**/*.test.ts', 'tests/slt/wasm/*.test.ts', 'web/src/**/*.test.ts'];
const EVERYWHERE = ['bindings/js/src/**/*.test.ts', 'worker/shared/**/*.test.ts'];
/** Tests of what only one of the two has. */
const NOT_IN_NODE = ['bindings/js/src/connect.test.ts'];
const NOT_IN_BROWSER = ['bindings/js/src/node.test.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'node',
          include: [...EVERYWHERE, ...IN_NODE],
          exclude: NOT_IN_NODE,
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: [...EVERYWHERE, ...IN_BROWSER],
          exclude: NOT_IN_BROWSER,
          testTimeout: 20_000,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            // Tests in Node need none; who runs the others is told when it is to be started.
            provider: playwright({ launchOptions: findChromium() === null ? {} : launchOptions() }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
      {
        test: { name: 'tabs', include: [TABS], testTimeout: 60_000, fileParallelism: false },
      },
    ],
  },
});
