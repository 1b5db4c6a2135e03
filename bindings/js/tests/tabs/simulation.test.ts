/**
 * Tabs that share a database, simulated: see `simulation.ts`. `NACRE_TAB_SEEDS` runs more seeds, from
 * `NACRE_TAB_FIRST` on.
 */

import { expect, test } from 'vitest';
import { simulate, type Setup } from './simulation.js';

const SEEDS = Number(process.env['NACRE_TAB_SEEDS'] ?? 20);
/** Other work on the machine may slow a simulation down. */
const SLOW = { timeout: 3_600_000 };
const FIRST = Number(process.env['NACRE_TAB_FIRST'] ?? 1);

test('no seed loses, repeats or invents a row, or stands still', SLOW, async () => {
  const sum = { acknowledged: 0, unknown: 0, takeovers: 0 };
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const { problems, ...counts } = await simulate(seed);
    expect({ seed, problems }).toEqual({ seed, problems: [] });
    sum.acknowledged += counts.acknowledged;
    sum.unknown += counts.unknown;
    sum.takeovers += counts.takeovers;
  }
  console.log(`tabs: seeds=${SEEDS}`, sum);
  expect(sum.acknowledged).toBeGreaterThan(100 * SEEDS);
  expect(sum.takeovers).toBeGreaterThan(SEEDS);
  expect(sum.unknown).toBeGreaterThan(0);
});

/** The first seed that finds a planted bug. */
async function found(setup: Setup, problem: RegExp): Promise<void> {
  for (let seed = 1; seed <= 60; seed++) {
    const { problems } = await simulate(seed, setup).catch((error) => ({ problems: [`${error}`] }));
    if (problems.some((each) => problem.test(each))) {
      return;
    }
  }
  expect.unreachable('no seed found it');
}

test('a write that is repeated is found', SLOW, () =>
  found({ insert: 'select 1' }, /written 2 times/),
);

test('files that two workers have open are found', SLOW, () =>
  found({ sharedFiles: true }, /without the files|forEach/),
);

test('a lock that stays with a frozen tab is found', SLOW, () => found({ noSteal: true }, /stuck/));
