import type { Database, LiveOptions, LiveSubscription } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames, type Place } from './testing.js';

const COUNT = 'select count(*) as n from t';

/** A live count of rows, and the counts that it gave. */
async function counted(
  db: Database,
  options?: LiveOptions,
): Promise<{ counts: number[]; live: LiveSubscription<{ n: bigint }> }> {
  const counts: number[] = [];
  const live = await db.live.query<{ n: bigint }>(
    COUNT,
    [],
    ({ rows }) => void counts.push(Number(rows[0]!.n)),
    options,
  );
  return { counts, live };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 40));

async function two(place: Place): Promise<Database> {
  const db = await withNames(place, 'a', 'b');
  await db.exec('create table other (id int primary key)');
  return db;
}

describe.each(places)('a live query in $name', (place) => {
  test('runs again when rows follow the keys of another table', async () => {
    const db = await two(place);
    await db.exec('create table note (id int primary key, t int references t on delete cascade)');
    await db.exec('insert into note values (1, 1), (2, 2), (3, 2)');
    const counts: number[] = [];
    await db.live.query<{ n: bigint }>('select count(*) as n from note', [], ({ rows }) => {
      counts.push(Number(rows[0]!.n));
    });
    await db.query('delete from t where id = 2');
    await settled();
    await db.transaction(async (tx) => {
      await tx.query('delete from t where id = ?', [1]);
    });
    await settled();
    expect(counts).toEqual([3, 1, 0]);
  });

  test('runs again after each kind of commit that changed its table', async () => {
    const db = await two(place);
    const { counts } = await counted(db);
    expect(counts).toEqual([2]);
    const names: string[] = [];
    await db.live.query<{ name: string }>('select name from t where id = ?', [1], ({ rows }) => {
      names.push(rows[0]?.name ?? 'none');
    });
    await db.query('insert into t values (?, ?)', [3, 'c']);
    await settled();
    await db.transaction(async (tx) => {
      await tx.query("insert into t values (4, 'd')");
      await settled();
      await tx.query("insert into t values (5, 'e')");
    });
    await settled();
    await db.insertRows('t', [{ id: 6, name: 'f' }]);
    await settled();
    await db.query('delete from t where id > 4');
    await settled();
    const insert = await db.prepare('insert into t values (?, ?)');
    await insert.run([9, 'x']);
    await settled();
    expect(counts).toEqual([2, 3, 5, 6, 4, 5]);
    await db.query("update t set name = 'A' where id = 1");
    await settled();
    expect(names.at(-1)).toBe('A');
    await db.exec('truncate table t');
    await settled();
    expect([counts.at(-1), names.at(-1)]).toEqual([0, 'none']);
  });

  test('does not run after other statements', async () => {
    const db = await two(place);
    const { counts } = await counted(db);
    await db.query('insert into other values (1)');
    await db.query('select * from t');
    await expectKind(db.query("insert into t values (1, 'again')"), 'constraint');
    await db.transaction(async (tx) => {
      await tx.query("insert into t values (3, 'c')");
      await tx.rollback();
    });
    await settled();
    expect(counts).toEqual([2]);
  });

  test('covers many commits by few runs', async () => {
    const db = await two(place);
    const { counts } = await counted(db);
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => db.query('insert into t values (?, ?)', [i + 10, 'x'])),
    );
    await settled();
    expect(counts.at(-1)).toBe(202);
    expect(counts.length).toBeLessThan(100);
  });

  test('waits for a function that takes long', async () => {
    const db = await two(place);
    let running = 0;
    let calls = 0;
    let last = 0;
    await db.live.query<{ n: bigint }>(COUNT, [], async ({ rows }) => {
      expect(++running).toBe(1);
      last = Number(rows[0]!.n);
      calls++;
      await new Promise((resolve) => setTimeout(resolve, 20));
      running--;
    });
    for (let i = 10; i < 30; i++) {
      await db.query('insert into t values (?, ?)', [i, 'x']);
    }
    await settled();
    await settled();
    expect(last).toBe(22);
    expect(calls).toBeLessThan(20);
  });

  test('goes on after an error of its function', async () => {
    const db = await two(place);
    const errors: unknown[] = [];
    let calls = 0;
    const live = await db.live.query(
      COUNT,
      [],
      () => {
        calls++;
        throw new Error(`call ${calls}`);
      },
      { onError: (error) => void errors.push((error as Error).message) },
    );
    await db.query("insert into t values (3, 'c')");
    await settled();
    expect([calls, errors]).toEqual([2, ['call 1', 'call 2']]);
    await live.unsubscribe();
    expect((await db.query(COUNT)).rows).toEqual([{ n: 3n }]);
  });

  test('ends with an error of the query', async () => {
    const db = await two(place);
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const { counts } = await counted(db, { onError });
    await db.exec('drop table t');
    await settled();
    await db.exec('create table t (id int primary key)');
    await settled();
    expect(counts).toEqual([2]);
    expect(errors).toMatchObject([{ name: 'NacreError', kind: 'not_found' }]);
  });

  test('sees a column that was added, and a view over its table', async () => {
    const db = await two(place);
    await db.exec("create view named as select * from t where name <> 'a'");
    const counts: number[] = [];
    await db.live.query('select * from named', [], ({ rowCount }) => void counts.push(rowCount));
    await db.query("insert into t values (3, 'c')");
    await settled();
    expect(counts).toEqual([1, 2]);
  });

  test('ends when it is unsubscribed, disposed of, aborted, or with its database', async () => {
    const db = await two(place);
    const controller = new AbortController();
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const unsubscribed = await counted(db, { onError });
    const aborted = await counted(db, { signal: controller.signal, onError });
    const open = await counted(db, { onError });
    const disposed: number[] = [];
    {
      await using live = await counted(db, { onError }).then(({ counts, live: subscription }) => {
        disposed.push(...counts);
        return subscription;
      });
      expect(live).toBeDefined();
    }
    await unsubscribed.live.unsubscribe();
    await unsubscribed.live.unsubscribe();
    controller.abort();
    await db.query("insert into t values (3, 'c')");
    await settled();
    expect([unsubscribed.counts, aborted.counts, open.counts]).toEqual([[2], [2], [2, 3]]);
    await db.close();
    await settled();
    await open.live.unsubscribe();
    expect([errors, disposed]).toEqual([[], [2]]);
    await expectKind(counted(db), 'closed');
  });

  test('must be a query, with a function', async () => {
    const db = await two(place);
    const call = (): void => {};
    await expectKind(db.live.query('delete from t returning id', [], call), 'unsupported');
    await expectKind(db.live.query("insert into t values (9, 'x')", [], call), 'unsupported');
    await expectKind(db.live.query('select nothing from t', [], call), 'not_found');
    await expectKind(db.live.query('select 1 / (id - id) from t', [], call), 'type');
    await expectKind(db.live.query(COUNT, [], undefined as never), 'type');
    const { signal } = new AbortController();
    const aborted = AbortSignal.abort();
    await expectKind(db.live.query(COUNT, [], call, { signal: aborted }), 'cancelled');
    await db.live.query(COUNT, [], call, { signal });
    expect((await db.query(COUNT)).rows).toEqual([{ n: 2n }]);
  });
});
