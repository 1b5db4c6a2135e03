/** A short, fixed part of the simulation of the edge. `npm run sim -- edge` runs longer ones. */

import { expect, test } from 'vitest';
import { PLANTS, replayEdge, simulateEdge } from '../../tools/sim-edge.mjs';

const SLOW = { timeout: 180_000 };

test('no seed fails, and together they do what the simulation is there for', SLOW, async () => {
  const { failed, counts } = await simulateEdge({ seeds: 40 });
  expect(failed.map(({ seed, failure }) => [seed, failure])).toEqual([]);
  const least = {
    write: 500,
    view: 100,
    optimize: 20,
    upload: 5,
    ends: 100,
    losses: 10,
    alarms: 40,
    reads: 40,
    'reads of positions': 40,
    faults: 500,
  };
  for (const [what, n] of Object.entries(least)) {
    expect(counts[what] ?? 0, `${what} of ${JSON.stringify(counts)}`).toBeGreaterThan(n);
  }
});

test.for(PLANTS)('finds %s', SLOW, async (plant) => {
  const { failed } = await simulateEdge({ seeds: 200, plant });
  expect(failed[0]?.failure).toMatch(/^Error: WRONG/);
});

test('the same seed tells the same story', SLOW, async () => {
  const { story } = await replayEdge(14);
  expect(story.length).toBeGreaterThan(20);
  expect((await replayEdge(14)).story).toEqual(story);
});
