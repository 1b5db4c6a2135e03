/**
 * `npm test`: everything that is checked, in one command. `--only lint|rust|node|browser` runs one
 * part. A failing step does not hide the ones after it. The last line is `N passed, N failed`:
 * tests of all runners, plus one failure for each check that is not a test.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { buildPackage } from './build.mjs';
import {
  bin,
  cargoBuiltTest,
  cargoTest,
  Failure,
  main,
  probe,
  run,
  seconds,
  target,
} from './lib.mjs';
import { buildDocs } from './docs.mjs';
import { edgekill } from './edgekill.mjs';
import { ensureFirefox } from './firefox.mjs';
import { fuzzWasm } from './fuzz-wasm.mjs';
import { packCheck } from './pack-check.mjs';
import { setup } from './setup.mjs';
import { printSize } from './size.mjs';
import { tidy } from './tidy.mjs';

const PARTS = ['lint', 'rust', 'node', 'browser'];
const HEARTBEAT_MS = 20_000;

const wanted = parts(process.argv.slice(2));
const totals = { passed: 0, failed: 0, ignored: 0 };
const failures = [];

function parts(args) {
  const at = args.indexOf('--only');
  if (at === -1) {
    return PARTS;
  }
  const part = args[at + 1];
  if (!PARTS.includes(part)) {
    console.error(`--only takes one of ${PARTS.join(', ')}`);
    process.exit(2);
  }
  return [part];
}

/** Runs one step and says so. `work` answers `{ passed, failed }` if it ran tests. */
async function step(name, work) {
  const started = Date.now();
  console.log(`▸ ${name}`);
  const beat = setInterval(() => {
    console.log(`  … ${name}: ${seconds(Date.now() - started)} so far`);
  }, HEARTBEAT_MS);
  try {
    const counts = await work();
    const tests = counts === undefined ? '' : `, ${counts.passed} tests`;
    add(counts);
    if (counts !== undefined && counts.failed > 0) {
      throw new Failure(`${counts.failed} tests failed`);
    }
    console.log(`✓ ${name} (${seconds(Date.now() - started)}${tests})`);
    return true;
  } catch (error) {
    if (error.counts === undefined || error.counts.failed === 0) {
      totals.failed += error instanceof Failure && /tests failed$/.test(error.message) ? 0 : 1;
    }
    add(error.counts);
    failures.push(name);
    console.log(
      `✗ ${name} (${seconds(Date.now() - started)}): ${error instanceof Failure ? error.message : error.stack}`,
    );
    return false;
  } finally {
    clearInterval(beat);
  }
}

function add(counts) {
  totals.passed += counts?.passed ?? 0;
  totals.failed += counts?.failed ?? 0;
  totals.ignored += counts?.ignored ?? 0;
}

async function vitest(project) {
  const report = path.join(target, `vitest-${project}.json`);
  fs.rmSync(report, { force: true });
  const args = [
    'run',
    '--project',
    project,
    '--reporter',
    'default',
    '--reporter',
    'json',
    `--outputFile.json=${report}`,
  ];
  const counts = () => {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(
      fs.readFileSync(report, 'utf8'),
    );
    return { passed: numPassedTests, failed: numFailedTests, ignored: numPendingTests };
  };
  try {
    await run(bin('vitest'), args, { quiet: true });
    return counts();
  } catch (error) {
    error.counts = fs.existsSync(report) ? counts() : undefined;
    throw error;
  }
}

/**
 * Every interleaving of few threads, under loom. A feature, so that nothing else is built again for
 * it.
 */
const MODELS = [
  '--lib',
  ...['nacre-rowstore', 'nacre-log', 'nacre-segment'].flatMap((crate) => [
    '-p',
    crate,
    '--features',
    `${crate}/loom`,
  ]),
];
/**
 * Publishing of segments and bitmaps: only the models, because other tests of that crate know no
 * loom.
 */
const TABLE_MODELS = ['--lib', '-p', 'nacre-table', '--features', 'nacre-table/loom', 'models'];
/** Varied statements. Their own step, because the parser is compiled again for it. */
const CLAUSES = ['-p', 'nacre-syntax', '--features', 'trees'];
const quiet = { quiet: true };
const wasm = ['--target', 'wasm32-unknown-unknown'];

async function lint() {
  await step('cargo fmt', async () => {
    await run('cargo', ['fmt', '--all', '--check'], quiet);
    await run('node', ['tools/format-encodings.mjs', '--check'], quiet);
  });
  await step('prettier', async () => void (await run(bin('prettier'), ['--check', '.'], quiet)));
  await step('cargo clippy', async () => {
    await run(
      'cargo',
      [
        'clippy',
        '-q',
        '--workspace',
        '--exclude',
        'nacre-wasm',
        '--exclude',
        'nacre-module',
        '--all-targets',
        '--',
        '-D',
        'warnings',
      ],
      quiet,
    );
  });
  await step('cargo clippy, wasm', async () => {
    await run(
      'cargo',
      ['clippy', '-q', '-p', 'nacre-module', '-p', 'nacre-wasm', ...wasm, '--', '-D', 'warnings'],
      quiet,
    );
  });
  await step('tidy', () => tidy());
  if (probe('cargo', ['deny', '--version']) === null) {
    console.log('- cargo deny: skipped, it is not installed (licences are checked by tidy)');
  } else {
    await step('cargo deny', async () => void (await run('cargo', ['deny', 'check'], quiet)));
  }
}

/**
 * The scripts' totals, in records, and why some were skipped. Their tests are counted by
 * `cargo test`.
 */
async function sqllogictest() {
  // Not `-p`: that would build the engine again, without what others ask of it.
  const output = await run(
    'cargo',
    ['run', '-q', '--bin', 'nacre-slt', '--', 'tests/slt/cases'],
    quiet,
  );
  for (const line of output.split('\n').filter((l) => /^(skipped \d|slt: )/.test(l))) {
    console.log(`  ${line}`);
  }
}

async function rust() {
  await step('cargo test', () => cargoTest([]));
  await step('session tests on absent bytes', () =>
    cargoBuiltTest('tests/session', { NACRE_ABSENT: '1' }),
  );
  await step('model checks', () => cargoTest(MODELS));
  await step('model checks of publishing', () => cargoTest(TABLE_MODELS));
  await step('planted bugs', () =>
    cargoTest(['--features', 'nacre-sim/plant', '--test', 'planted']),
  );
  await step('clauses of statements', () => cargoTest(CLAUSES));
  await step('sqllogictest', sqllogictest);
}

/** Times that a Worker is killed in each run, with the same choices. */
const KILLS = 20;

async function killed() {
  const { lost, phantom } = await edgekill(KILLS, 1);
  const failed = Math.min(KILLS, lost + phantom);
  return { passed: KILLS - failed, failed, ignored: 0 };
}

/** Statements count as tests. */
async function fuzzed() {
  const { statements, left, differing } = await fuzzWasm();
  return { passed: statements - left - differing, failed: differing, ignored: left };
}

async function packages() {
  const built = await step('build the package', buildPackage);
  if (built) {
    await step('size of the engine', async () => printSize());
  }
  return built;
}

await main(async () => {
  const started = Date.now();
  const has = (part) => wanted.includes(part);
  await setup({ browser: has('browser') });
  if (has('lint')) {
    await lint();
  }
  if (has('rust')) {
    await rust();
  }
  if (has('lint') || has('node') || has('browser')) {
    const built = await packages();
    if (built && has('lint')) {
      await step('tsc', async () => void (await run(bin('tsc'), ['-p', '.'], quiet)));
    }
    if (built && has('node')) {
      await step('vitest in Node', () => vitest('node'));
      await step('fuzz cases through WebAssembly', fuzzed);
      await step('Workers killed at random', killed);
      await step('the documentation’s site', buildDocs);
    }
    if (built && has('browser')) {
      await step('vitest in Chromium', () => vitest('browser'));
      await step('Playwright: reloads and tabs', () => vitest('tabs'));
      if (await ensureFirefox()) {
        await step('Firefox: reloads and tabs', () => vitest('tabs-firefox'));
      } else {
        console.log('- Firefox: skipped, it is not installed');
      }
      if (await step('the documentation’s site', buildDocs)) {
        await step('the site in Chromium', async () => {
          // It needs packages, which `setup` has installed by now.
          const { checkDocs } = await import('./docs-check.mjs');
          await checkDocs();
        });
      }
      await step('npm pack, installed and bundled', () => packCheck());
      await step('examples: Rust, Node, Vite, ORMs, React, command line', () => vitest('examples'));
    }
  }
  const ignored = totals.ignored === 0 ? '' : `, ${totals.ignored} ignored`;
  console.log(
    `\n${failures.length === 0 ? 'everything passed' : `failed: ${failures.join(', ')}`} in ${seconds(Date.now() - started)}`,
  );
  console.log(`tests run: ${totals.passed + totals.failed}${ignored}`);
  console.log(`${totals.passed} passed, ${totals.failed} failed`);
  if (totals.failed > 0 || failures.length > 0) {
    process.exitCode = 1;
  }
});
