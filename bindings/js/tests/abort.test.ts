import type { Database } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { connected, expectKind, places, type Place } from './testing.js';

const ROWS = 30_000;
/** Takes minutes, and answers no row before its end. */
const ENDLESS = 'select count(*) as n from big a, big b where a.id + b.id + ? < 0';

async function withBig(place: Place): Promise<Database> {
  const db = await connected(await place.fresh());
  const numbers = `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${ROWS})`;
  await db.exec(`create table big (id int primary key, name text);
    insert into big ${numbers} select i, concat('name ', i) from n;
    create table t (id bigint primary key, name text);
    insert into t values (1, 'a'), (2, 'b')`);
  return db;
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs a call and aborts it after a while. */
async function aborted(call: (signal: AbortSignal) => Promise<unknown>, ms = 60): Promise<void> {
  const controller = new AbortController();
  const running = call(controller.signal);
  running.catch(() => {});
  await later(ms);
  controller.abort('enough');
  await expectKind(running, 'cancelled', { cause: 'enough' });
}

describe.each(places)('a signal in $name', (place) => {
  test('stops a running query', async () => {
    const db = await withBig(place);
    const began = performance.now();
    await aborted((signal) => db.query(ENDLESS, [0], { signal }));
    await aborted((signal) => db.queryArrow(ENDLESS, [0], { signal }));
    const statement = await db.prepare(ENDLESS);
    await aborted((signal) => statement.run([0], { signal }));
    await aborted((signal) => statement.get([0], { signal }));
    await aborted((signal) => statement.all([0], { signal }));
    // Each of them would take minutes.
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await db.query('select count(*) as n from big')).rows).toEqual([{ n: BigInt(ROWS) }]);
  });

  test('stops a stream that has no rows yet', async () => {
    const db = await withBig(place);
    const sql = 'select a.id from big a, big b where a.id + b.id + ? < 0';
    await aborted(async (signal) => {
      for await (const row of db.stream(sql, [0], { signal }).rows()) {
        expect(row).toBeNull();
      }
    });
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  });

  test('undoes a write', async () => {
    const db = await withBig(place);
    await db.exec('create table copy (id bigint primary key, name text)');
    const insert =
      'insert into copy select cast(a.id as bigint) * 100000 + b.id, a.name from big a, big b';
    await aborted((signal) => db.query(insert, [], { signal }), 300);
    const update = `update t set name = 'c' where id > (${ENDLESS.replace('?', '0')})`;
    await aborted((signal) => db.exec(update, { signal }));
    expect((await db.query('select count(*) as n from copy')).rows).toEqual([{ n: 0n }]);
    expect((await db.query('select name from t order by id')).rows).toEqual([
      { name: 'a' },
      { name: 'b' },
    ]);
    await db.exec('insert into copy select id, name from big');
    expect((await db.query('select count(*) as n from copy')).rows).toEqual([{ n: BigInt(ROWS) }]);
  });

  test('leaves the transaction open, with what it did before', async () => {
    const db = await withBig(place);
    await db.transaction(async (tx) => {
      await tx.query("insert into t values (3, 'c')");
      await aborted((signal) => tx.query(ENDLESS, [0], { signal }));
      const wide = "insert into t select a.id + 10, 'd' from big a, big b where a.id + b.id < 0";
      await aborted((signal) => tx.query(wide, [], { signal }));
      await tx.query("insert into t values (4, 'e')");
    });
    const { rows } = await db.query('select name from t order by id');
    expect(rows.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'e']);
  });

  test('undoes a transaction, with what runs in it and what waits', async () => {
    const db = await withBig(place);
    let late: Promise<unknown> | undefined;
    await aborted((signal) =>
      db.transaction(
        async (tx) => {
          await tx.exec("update t set name = 'mine'");
          const running = tx.query(ENDLESS, [0]);
          late = Promise.allSettled([running, tx.exec('delete from t')]);
          await running;
        },
        { signal },
      ),
    );
    expect(await late).toMatchObject([
      { status: 'rejected', reason: { kind: 'cancelled' } },
      { status: 'rejected', reason: { kind: 'cancelled' } },
    ]);
    // Its locks are free.
    expect((await db.query("update t set name = 'b' where id = 1")).rowsAffected).toBe(1);
    expect((await db.query('select name from t order by id')).rows).toEqual([
      { name: 'b' },
      { name: 'b' },
    ]);
  });

  test('undoes a transaction whose function waits for something else', async () => {
    const db = await withBig(place);
    let tx: Parameters<Parameters<Database['transaction']>[0]>[0] | undefined;
    const never = new Promise<void>(() => {});
    await aborted((signal) =>
      db.transaction(
        async (open) => {
          tx = open;
          await open.exec('delete from t');
          await never;
        },
        { signal },
      ),
    );
    await expectKind(tx!.query('select 1'), 'closed');
    expect((await db.query('delete from t where id = 1')).rowsAffected).toBe(1);
    const signal = AbortSignal.abort('before');
    let hasRun = false;
    const work = async (): Promise<void> => {
      hasRun = true;
    };
    await expectKind(db.transaction(work, { signal }), 'cancelled', { cause: 'before' });
    expect(hasRun).toBe(false);
  });

  test('does nothing to a transaction that has committed', async () => {
    const db = await withBig(place);
    const controller = new AbortController();
    const { signal } = controller;
    const left = await db.transaction(
      async (open) => {
        await open.exec('delete from t where id = 1');
        return (await open.query('select count(*) as n from t')).rows;
      },
      { signal },
    );
    controller.abort();
    expect(left).toEqual([{ n: 1n }]);
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 1n }]);
  });

  test('ends a load whose rows are being published', async () => {
    const db = await withBig(place);
    await db.transaction(async (tx) => {
      await tx.exec("update t set name = 'mine' where id = 1");
      const rows = [
        { id: 1, name: 'loaded' },
        { id: 3, name: 'c' },
      ];
      // It waits for the transaction.
      await aborted((signal) => db.insertRows('t', rows, { onDuplicate: 'replace', signal }));
    });
    const { rows } = await db.query('select name from t order by id');
    expect(rows).toEqual([{ name: 'mine' }, { name: 'b' }]);
    expect(await db.insertRows('t', [{ id: 1, name: 'again' }], { onDuplicate: 'replace' })).toBe(
      1,
    );
  });

  test('keeps a call that waits for its turn from starting', async () => {
    const db = await withBig(place);
    const [first, second] = [new AbortController(), new AbortController()];
    const running = db.query(ENDLESS, [0], { signal: first.signal });
    const waiting = db.query('delete from t', [], { signal: second.signal });
    await later(20);
    second.abort();
    first.abort();
    await Promise.all([expectKind(running, 'cancelled'), expectKind(waiting, 'cancelled')]);
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  });

  test('stops the rest of a text, and nothing that has ended', async () => {
    const db = await withBig(place);
    const text = `insert into t values (3, 'c'); ${ENDLESS.replace('?', '0')}; delete from t`;
    await aborted((signal) => db.exec(text, { signal }));
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 3n }]);
    const controller = new AbortController();
    const { signal } = controller;
    expect((await db.query('delete from t where id = ?', [3], { signal })).rowsAffected).toBe(1);
    controller.abort();
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  });
});

test('other sessions, timers and streams go on during a long statement', async () => {
  const place = places[0]!;
  const db = await withBig(place);
  const controller = new AbortController();
  let ended = false;
  const running = db.query(ENDLESS, [0], { signal: controller.signal }).finally(() => {
    ended = true;
  });
  running.catch(() => {});
  await later(10);
  for (let i = 3; i < 8; i++) {
    await db.transaction((tx) => tx.query('insert into t values (?, ?)', [i, 'x']));
  }
  expect(ended).toBe(false);
  controller.abort();
  await expectKind(running, 'cancelled');
  expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 7n }]);
});
