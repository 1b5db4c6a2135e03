import { describe, expect, test } from 'vitest';
import { expectKind, places, withNames } from './testing.js';

describe.each(places)('a transaction in $name', (place) => {
  const count = 'select count(*) as n from t';

  test('commits what it did and answers what the function answers', async () => {
    const db = await withNames(place, 'a');
    const answer = await db.transaction(async (tx) => {
      await tx.query('insert into t values (2, ?)', ['b']);
      expect((await tx.query(count)).rows).toEqual([{ n: 2n }]);
      return 'done';
    });
    expect(answer).toBe('done');
    expect((await db.query(count)).rows).toEqual([{ n: 2n }]);
  });

  test('is rolled back when the function throws', async () => {
    const db = await withNames(place, 'a');
    const failure = new Error('no');
    const promise = db.transaction(async (tx) => {
      await tx.exec(
        "insert into t values (2, 'b'); update t set name = 'z'; delete from t where id = 1",
      );
      throw failure;
    });
    await expect(promise).rejects.toBe(failure);
    expect((await db.query('select * from t')).rows).toEqual([{ id: 1n, name: 'a' }]);
  });

  test('is rolled back when a statement fails and the error is not caught', async () => {
    const db = await withNames(place, 'a');
    await expectKind(
      db.transaction(async (tx) => {
        await tx.query("insert into t values (2, 'b')");
        await tx.query("insert into t values (1, 'twice')");
      }),
      'constraint',
    );
    expect((await db.query(count)).rows).toEqual([{ n: 1n }]);
  });

  test('goes on after a failed statement that was caught', async () => {
    const db = await withNames(place, 'a');
    await db.transaction(async (tx) => {
      await tx.query("insert into t values (2, 'b')");
      await expectKind(tx.query("insert into t values (3, 'c'), (1, 'twice')"), 'constraint');
      await tx.query("insert into t values (4, 'd')");
    });
    const ids = (await db.query('select id from t order by id')).rows.map((row) => row['id']);
    expect(ids).toEqual([1n, 2n, 4n]);
  });

  test('changes the catalog with its rows: others see all of it, or nothing', async () => {
    const db = await withNames(place, 'a');
    const failure = new Error('no');
    const change = (isDone: boolean) =>
      db.transaction(async (tx) => {
        await tx.exec('create table u (id int primary key, name text)');
        await tx.exec('alter table u add column n int default 7');
        await tx.query('insert into u (id, name) select id, name from t');
        await tx.exec('create view v as select name, n from u; drop table t');
        expect((await tx.query('select * from v')).rows).toEqual([{ name: 'a', n: 7 }]);
        await expectKind(tx.query('select * from t'), 'not_found');
        await expectKind(db.query('select * from u'), 'not_found');
        expect((await db.query(count)).rows).toEqual([{ n: 1n }]);
        if (!isDone) {
          throw failure;
        }
      });
    await expect(change(false)).rejects.toBe(failure);
    await expectKind(db.query('select * from v'), 'not_found');
    expect((await db.query(count)).rows).toEqual([{ n: 1n }]);
    await change(true);
    expect((await db.query('select * from v')).rows).toEqual([{ name: 'a', n: 7 }]);
    await expectKind(db.query(count), 'not_found');
  });

  test('changes tables that were there before, for others when it commits', async () => {
    const db = await withNames(place, 'a');
    await db.transaction(async (tx) => {
      await tx.exec('alter table t add column n int default 7');
      await tx.exec('create index by_name on t (lower(name))');
      await tx.query("insert into t values (2, 'b', 8)");
      expect((await tx.query('select n from t order by id')).rows).toEqual([{ n: 7 }, { n: 8 }]);
      await expectKind(db.query('select n from t'), 'not_found');
    });
    expect((await db.query('select n from t order by id')).rows).toEqual([{ n: 7 }, { n: 8 }]);
  });

  test('is not seen before it commits', async () => {
    const db = await withNames(place, 'a');
    await db.transaction(async (tx) => {
      await tx.query("update t set name = 'changed' where id = 1");
      expect((await db.query('select name from t')).rows).toEqual([{ name: 'a' }]);
    });
    expect((await db.query('select name from t')).rows).toEqual([{ name: 'changed' }]);
  });

  test('can be rolled back by hand, and refuses calls afterwards', async () => {
    const db = await withNames(place, 'a');
    await db.transaction(async (tx) => {
      await tx.query("insert into t values (2, 'b')");
      await tx.rollback();
      await expectKind(tx.query(count), 'closed');
    });
    expect((await db.query(count)).rows).toEqual([{ n: 1n }]);
  });

  test('cannot be ended by SQL, and no statement in it commits by itself', async () => {
    const db = await withNames(place, 'a');
    for (const end of ['commit', 'rollback', "commit; insert into t values (3, 'c')"]) {
      await expectKind(
        db.transaction(async (tx) => {
          await tx.query("insert into t values (2, 'b')");
          await tx.exec(end);
        }),
        'closed',
      );
    }
    await expectKind(
      db.transaction(async (tx) => tx.prepare('commit')),
      'closed',
    );
    await expectKind(
      db.transaction(async (tx) => tx.stream('end').rows().next()),
      'closed',
    );
    expect((await db.query(count)).rows).toEqual([{ n: 1n }]);
    await db.transaction(async (tx) => {
      await tx.exec(
        "savepoint s; insert into t values (2, 'b'); rollback to s; insert into t values (4, 'd')",
      );
      await expectKind(tx.query('rollback'), 'closed');
    });
    expect((await db.query('select id from t order by id')).rows).toEqual([{ id: 1n }, { id: 4n }]);
  });

  test('the words that end it are recognised as statements only', async () => {
    const db = await withNames(place, 'a');
    const ending = [
      'commit',
      ' END;',
      'abort',
      'Rollback Work',
      "insert into t values (9, 'it''s; x');\n-- that is all\nCOMMIT",
      "select E'it\\'s'; /* ; */ rollback transaction; select 1",
      'commit /* and */ and chain',
    ];
    const harmless = [
      'savepoint s; rollback to s',
      'savepoint s; rollback work to savepoint s',
      'select 1; savepoint s; rollback transaction to s',
      "select case when id > 1 then 'commit' end from t",
      "select '; commit', 1 as \"; commit\", 2 as `; commit`, E'\\'; commit' -- ; commit",
      "select 'x' /* y; commit */ from t as committed",
      'select commit.id from t as commit',
    ];
    await db.transaction(async (tx) => {
      for (const sql of ending) {
        await expectKind(tx.exec(sql), 'closed');
      }
      for (const sql of harmless) {
        await tx.exec(sql);
      }
      await tx.exec("insert into t values (2, 'b')");
    });
    expect((await db.query('select id from t order by id')).rows).toEqual([{ id: 1n }, { id: 2n }]);
  });

  test('several run at a time; a conflict can be retried', async () => {
    const db = await withNames(place, 'a', 'b');
    const increment = async (id: number): Promise<void> => {
      for (;;) {
        try {
          return await db.transaction(async (tx) => {
            const { rows } = await tx.query<{ name: string }>('select name from t where id = ?', [
              id,
            ]);
            await tx.query('update t set name = ? where id = ?', [`${rows[0]!.name}+`, id]);
          });
        } catch (error) {
          if (!(error as { retryable?: boolean }).retryable) {
            throw error;
          }
        }
      }
    };
    await Promise.all([increment(1), increment(2), increment(1), increment(2), increment(1)]);
    expect((await db.query('select name from t order by id')).rows).toEqual([
      { name: 'a+++' },
      { name: 'b++' },
    ]);
  });

  test('a statement waits for another transaction to end', async () => {
    const db = await withNames(place, 'a');
    let outside: Promise<unknown> | null = null;
    await db.transaction(async (tx) => {
      await tx.query("update t set name = 'inside' where id = 1");
      outside = db.query("update t set name = 'outside' where id = 1");
      await tx.query("insert into t values (2, 'b')");
    });
    await outside;
    expect((await db.query('select name from t where id = 1')).rows).toEqual([{ name: 'outside' }]);
  });
});
