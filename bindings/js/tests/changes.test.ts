import type { Changes, Database, LiveChanges } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

interface Name {
  id: bigint;
  name: string;
}

/** The next batch, in a short form: `+` inserted, `~` updated, `-` deleted. */
async function next(changes: LiveChanges<Name>): Promise<string> {
  const { value } = await changes.next();
  const text = (sign: string, rows: Name[]) => rows.map(({ id, name }) => `${sign}${id}${name}`);
  const { inserted, updated, deleted } = value as Changes<Name>;
  return [...text('+', inserted), ...text('~', updated), ...text('-', deleted)].join(' ');
}

async function follow(db: Database): Promise<LiveChanges<Name>> {
  return db.live.changes<Name>('t');
}

describe.each(places)('the changes of a table in $name', (place) => {
  test('are those of each kind of commit', async () => {
    const db = await withNames(place, 'a', 'b');
    const changes = await follow(db);
    await db.query("insert into t values (3, 'c')");
    expect(await next(changes)).toBe('+3c');
    await db.transaction(async (tx) => {
      await tx.query("update t set name = 'B' where id = 2");
      await tx.query('delete from t where id = 1');
    });
    expect(await next(changes)).toBe('~2B -1a');
    await db.insertRows(
      't',
      [
        { id: 3, name: 'C' },
        { id: 4, name: 'd' },
      ],
      { onDuplicate: 'replace' },
    );
    expect(await next(changes)).toBe('+4d ~3C');
    const insert = await db.prepare('insert into t values (?, ?)');
    await insert.run([9, 'x']);
    expect(await next(changes)).toBe('+9x');
    await db.exec('optimize table t full; update t set id = 10 where id = 9');
    expect(await next(changes)).toBe('+10x -9x');
    await changes.unsubscribe();
  });

  test('are what differs, each row once, and nothing of what is rolled back', async () => {
    const db = await withNames(place, 'a');
    const changes = await follow(db);
    await db.exec(
      "update t set name = 'x'; update t set name = 'a'; insert into t values (2, 'b')",
    );
    await db.exec(
      "insert into t values (3, 'c'); delete from t where id = 3; begin; delete from t; rollback",
    );
    expect(await next(changes)).toBe('+2b');
    const waiting = next(changes);
    await db.exec("begin; insert into t values (5, 'e'); rollback");
    await db.exec("update t set name = name; insert into t values (6, 'f')");
    expect(await waiting).toBe('+6f');
    await changes.unsubscribe();
  });

  test('begin after earlier statements, and end with a loop', async () => {
    const db = await withNames(place, 'a');
    void db.query("insert into t values (2, 'b')");
    const changes = await follow(db);
    void db.query("insert into t values (3, 'c')");
    for await (const { inserted } of changes) {
      expect(inserted).toEqual([{ id: 3n, name: 'c' }]);
      break;
    }
    expect(await changes.next()).toEqual({ done: true, value: undefined });
  });

  test('end with an error, or by a signal', async () => {
    const db = await withNames(place, 'a');
    await db.exec('create table keyless (n int)');
    await expectKind(db.live.changes('missing'), 'not_found');
    await expectKind(db.live.changes('keyless'), 'unsupported');
    await expectKind(db.live.changes(1 as never), 'type');
    const controller = new AbortController();
    const aborted = await db.live.changes('t', { signal: controller.signal });
    const waiting = expectKind(aborted.next(), 'cancelled');
    controller.abort();
    await waiting;
    const truncated = await follow(db);
    await db.exec('truncate table t');
    await expectKind(truncated.next(), 'conflict');
    const dropped = await follow(db);
    await db.exec('drop table t');
    await expectKind(dropped.next(), 'not_found');
  });
});
