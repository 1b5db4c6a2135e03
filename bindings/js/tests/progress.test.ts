import type { Database } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { connected, expectKind, places, type Place } from './testing.js';

const ROWS = 20_000;
/** Reads the table twice, and pairs all of its rows. */
const LONG = 'select count(*) as n from big a, big b where a.id + b.id + ? < 0';

async function withBig(place: Place): Promise<Database> {
  const db = await connected(await place.fresh());
  await db.exec(`create table big (id int primary key);
    insert into big select i from generate_series(0, ${ROWS - 1}) as s(i)`);
  return db;
}

describe.each(places)('progress in $name', (place) => {
  test('is reported while a statement runs', async () => {
    const db = await withBig(place);
    const reports: [number, number][] = [];
    const controller = new AbortController();
    const onProgress = (rows: number, fraction: number): void => {
      reports.push([rows, fraction]);
      if (reports.length === 3) {
        controller.abort();
      }
    };
    const { signal } = controller;
    await expectKind(db.query(LONG, [0], { onProgress, signal }), 'cancelled');
    expect(reports).toHaveLength(3);
    for (const [at, [rows, fraction]] of reports.entries()) {
      expect(rows).toBeGreaterThan(0);
      expect(rows).toBeLessThanOrEqual(2 * ROWS);
      expect(fraction).toBeCloseTo(rows / (2 * ROWS), 2);
      expect(fraction).toBeGreaterThanOrEqual(reports[at - 1]?.[1] ?? 0);
    }
  });

  test('is not reported by a short statement, nor after its end', async () => {
    const db = await withBig(place);
    let calls = 0;
    const onProgress = (): void => void calls++;
    const statement = await db.prepare('select count(*) as n from big');
    expect(await statement.all([], { onProgress })).toEqual([{ n: BigInt(ROWS) }]);
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(calls).toBe(0);
  });

  test('cancels the statement when its function throws', async () => {
    const db = await withBig(place);
    const running = db.query(LONG, [0], {
      onProgress: () => {
        throw new Error('not my day');
      },
    });
    await expect(running).rejects.toThrow('not my day');
    expect((await db.query('select count(*) as n from big')).rows).toEqual([{ n: BigInt(ROWS) }]);
  });

  test('of a load has the part that is done, if all is known', async () => {
    const db = await connected(await place.fresh());
    await db.exec('create table t (id int primary key)');
    const reports: (number | undefined)[] = [];
    const onProgress = (_: number, fraction: number | undefined): void =>
      void reports.push(fraction);
    await db.insertRows(
      't',
      { id: Int32Array.from({ length: ROWS }, (_, i) => i) },
      { onProgress },
    );
    expect(reports.at(-1)).toBe(1);
    expect(reports.length).toBeGreaterThan(1);
    expect(reports[0]).toBeCloseTo(4096 / ROWS, 5);
    reports.length = 0;
    await db.insertRows('t', new Set([{ id: ROWS }]), { onProgress });
    expect(reports).toEqual([undefined]);
  });
});
