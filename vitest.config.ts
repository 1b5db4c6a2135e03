/**
 * Six projects of tests: in Node, in a page of a real Chromium or Firefox, in Node driving several tabs of one or the
 * other, and the programs of `examples/`. The tests of the package's API, and the examples of its documentation, are the same files in Node and
 * in the browser; they import the built package.
 */

import { playwright } from '@vitest/browser-playwright';
import { defineConfig } from 'vitest/config';
import { findChromium, launchOptions } from './tools/chromium.mjs';
import { installedFirefox } from './tools/firefox-provider.mjs';

const TABS = 'tests/browser/**/*.tabs.test.ts';
const IN_FIREFOX = 'tests/browser/**/*.firefox.test.ts';
const IN_BROWSER = ['worker/browser/**/*.test.ts', 'tests/browser/**/*.browser.test.ts'];
const IN_NODE = [
  'worker/{edge,node}/**/*.test.ts',
  'tests/edge/*.test.ts',
  'tests/slt/wasm/*.test.ts',
  'tests/docs/command.test.ts',
  'tests/docs/orms.test.ts',
  'tests/docs/pages.test.ts',
  'tests/docs/public.test.ts',
  'tests/docs/types.test.ts',
  'web/src/**/*.test.ts',
  'bindings/{kysely,drizzle,react}/tests/**/*.test.{ts,tsx}',
];
const EVERYWHERE = [
  'bindings/js/tests/**/*.test.ts',
  'worker/shared/**/*.test.ts',
  'tests/docs/examples.test.ts',
];
/** Tests of what only the other of the two has. */
const NOT_IN_NODE = ['bindings/js/tests/connect.test.ts'];
const NOT_IN_BROWSER = [
  'bindings/js/tests/{blobs,node,tiers}.test.ts',
  'bindings/js/tests/tabs/*.test.ts',
];
/** Writes the examples of the documentation as modules. */
const GENERATE = ['tests/docs/generate.ts'];

/** Ends a test that hangs; a slow machine should not reach it. */
const testTimeout = 90_000;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'node',
          include: [...EVERYWHERE, ...IN_NODE],
          exclude: NOT_IN_NODE,
          globalSetup: GENERATE,
          testTimeout,
        },
      },
      {
        test: {
          name: 'browser',
          include: [...EVERYWHERE, ...IN_BROWSER],
          exclude: NOT_IN_BROWSER,
          globalSetup: GENERATE,
          testTimeout,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            // Tests in Node need no Chromium. Without one, the other tests fail when they start it.
            provider: playwright({ launchOptions: findChromium() === null ? {} : launchOptions() }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
      {
        test: { name: 'tabs', include: [TABS], testTimeout, fileParallelism: false },
      },
      {
        test: {
          name: 'firefox',
          include: [...EVERYWHERE, ...IN_BROWSER],
          exclude: NOT_IN_BROWSER,
          globalSetup: GENERATE,
          testTimeout,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: installedFirefox(),
            instances: [{ browser: 'firefox' }],
          },
        },
      },
      {
        test: {
          name: 'tabs-firefox',
          include: [IN_FIREFOX],
          testTimeout,
          hookTimeout: 90_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'examples',
          include: ['examples/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
