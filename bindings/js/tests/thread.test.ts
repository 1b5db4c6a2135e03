/** The engine in the calling thread: Node, or a dedicated worker. A page cannot have it. */

import { connectInThread, type ThreadDatabase } from 'nacredb';
import { expect, onTestFinished, test } from 'vitest';
import { expectKind } from './testing.js';

const inPage = typeof document !== 'undefined';

async function opened(): Promise<ThreadDatabase> {
  const db = await connectInThread('memory://');
  onTestFinished(() => db.close());
  await db.exec("create table t (id bigint primary key, name text); insert into t values (1, 'a')");
  return db;
}

test.runIf(inPage)('a page is refused', async () => {
  await expectKind(connectInThread('memory://'), 'unsupported');
});

test.skipIf(inPage)('statements run synchronously', async () => {
  const db = await opened();
  const insert = db.prepareSync('insert into t values (?, ?)');
  expect(insert.runSync([2, 'b']).rowsAffected).toBe(1);
  const byId = await db.prepare<{ name: string }>('select name from t where id = ?');
  expect(byId.getSync([2])).toEqual({ name: 'b' });
  expect(byId.getSync([9])).toBeUndefined();
  expect(byId.allSync([1])).toEqual([{ name: 'a' }]);
  // The asynchronous functions are those of every database.
  expect(await byId.get([2])).toEqual({ name: 'b' });
  expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  await byId.close();
  expect(() => byId.getSync([1])).toThrow('closed');
});

test.skipIf(inPage)('one row by its key is what running the statement answers', async () => {
  const db = await connectInThread('memory://');
  onTestFinished(() => db.close());
  await db.exec(`create table t (id int primary key, big bigint, wide decimal(30, 2), price decimal(9, 2),
    x double, yes boolean, day date, moment timestamp, bytes blob, doc json, "__proto__" text);
    insert into t values (1, 9007199254740993, 12345678901234567890.5, 1.25, -0.5, true,
      '2026-02-28', '2026-02-28 12:30:00', x'00ff', '{"a": [1, null]}', 'text');
    insert into t (id) values (2)`);
  const byId = await db.prepare('select * from t where id = ?');
  for (const at of ['in memory', 'in a segment']) {
    for (const id of [1, 2, 3, null, 1.5]) {
      expect(byId.getSync([id]), `${String(id)} ${at}`).toEqual(byId.allSync([id])[0]);
    }
    expect(Object.keys(byId.getSync([1])!)).toContain('__proto__');
    await db.exec('optimize table t flush');
  }
  expect(() => byId.getSync(['no number'])).toThrow(expect.objectContaining({ kind: 'type' }));
  const named = await db.prepare('select price as p from t where id = :id');
  expect(named.getSync({ id: 1 })).toEqual({ p: '1.25' });
});

test.skipIf(inPage)('one row by its key follows what the table becomes', async () => {
  const db = await opened();
  const byId = await db.prepare('select * from t where id = ?');
  expect(byId.getSync([1])).toEqual({ id: 1n, name: 'a' });
  await db.exec('alter table t rename column name to title');
  expect(byId.getSync([1])).toEqual({ id: 1n, title: 'a' });
  await db.exec('alter table t add column n int default 7');
  expect(byId.getSync([1])).toEqual({ id: 1n, title: 'a', n: 7 });
  expect(byId.getSync(['1'])).toEqual({ id: 1n, title: 'a', n: 7 });
  await db.exec('begin; update t set n = 8');
  expect(byId.getSync([1])).toEqual({ id: 1n, title: 'a', n: 8 });
  await db.exec('rollback; drop table t');
  expect(() => byId.getSync([1])).toThrow(expect.objectContaining({ kind: 'not_found' }));
});

test.skipIf(inPage)('a synchronous statement that takes long does not give way', async () => {
  const db = await opened();
  const sum = await db.prepare<{ n: bigint }>(
    'select count(*) as n from generate_series(1, 3000000) as s(i) where i % 7 = 0',
  );
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  expect(sum.getSync()?.n).toBe(428571n);
  expect(ticks).toBe(0);
  clearInterval(timer);
});

test.skipIf(inPage)('an error is thrown, and nothing is left locked', async () => {
  const db = await opened();
  const insert = await db.prepare('insert into t values (?, ?)');
  expect(() => insert.runSync([1, 'again'])).toThrow(
    expect.objectContaining({ kind: 'constraint' }),
  );
  expect(() => db.prepareSync('select nothing')).toThrow(
    expect.objectContaining({ kind: 'not_found' }),
  );
  expect(insert.runSync([3, 'c']).rowsAffected).toBe(1);
});

test.skipIf(inPage)('a synchronous statement does not wait', async () => {
  const db = await opened();
  const update = await db.prepare('update t set name = ? where id = 1');
  await db.transaction(async (tx) => {
    await tx.query("update t set name = 'locked' where id = 1");
    expect(() => update.runSync(['b'])).toThrow(expect.objectContaining({ kind: 'unavailable' }));
  });
  expect(update.runSync(['c']).rowsAffected).toBe(1);
  // While an asynchronous call runs, its session is busy.
  const long = db.query('select count(*) from generate_series(1, 3000000) as s(i) where i % 7 = 0');
  await Promise.resolve();
  expect(() => update.runSync(['d'])).toThrow(expect.objectContaining({ kind: 'unavailable' }));
  await long;
  expect((await db.query('select name from t')).rows).toEqual([{ name: 'c' }]);
  await db.close();
  expect(() => update.runSync(['e'])).toThrow(expect.objectContaining({ kind: 'closed' }));
});
