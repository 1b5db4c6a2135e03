import type { Database } from 'nacredb';
import { describe, expect, test } from 'vitest';
import { archiveOf, filesOf } from '../../../worker/shared/archive.js';
import { connected, durable, expectKind, places, withNames } from './testing.js';

const names = async (db: Database) =>
  (await db.query<{ name: string }>('select name from t order by id')).rows.map(({ name }) => name);

describe.each(places)('an export from $name', (place) => {
  test('has what is committed, and opens anywhere', async () => {
    const db = await withNames(place, 'a', 'b');
    await db.exec('create index by_name on t (name); optimize table t flush');
    await db.query("insert into t values (3, 'c')");
    await db.query('delete from t where id = 1');
    const file = await db.transaction(async (tx) => {
      await tx.query("insert into t values (4, 'uncommitted')");
      return db.export();
    });
    expect(file.type).toBe('application/x-tar');
    for (const other of places) {
      const copy = await connected(await other.fresh(), { import: file });
      expect(await names(copy)).toEqual(['b', 'c']);
      await copy.query("insert into t values (5, 'e')");
      expect((await copy.query("select id from t where name = 'c'")).rows).toEqual([{ id: 3n }]);
    }
    expect(await names(db)).toEqual(['b', 'c', 'uncommitted']);
  });

  test('has commits of relaxed durability, and follows long statements', async () => {
    const db = await connected(await place.fresh(), { durability: 'relaxed' });
    await db.exec(
      "create table t (id bigint primary key, name text); insert into t values (1, 'x')",
    );
    const bytes = new Uint8Array(await (await db.export()).arrayBuffer());
    const copy = await connected('memory://', { import: bytes });
    expect(await names(copy)).toEqual(['x']);
  });
});

test('an import survives closing', async () => {
  const db = await withNames(places[0]!, 'a');
  const url = await durable.fresh();
  const copy = await connected(url, { import: await db.export() });
  await copy.query("insert into t values (2, 'b')");
  await copy.close();
  const again = await connected(url);
  expect(await names(again)).toEqual(['a', 'b']);
});

test('an import takes no place of another database', async () => {
  const db = await withNames(durable, 'a');
  const file = await db.export();
  const url = await durable.fresh();
  const first = await connected(url, { import: file });
  await first.close();
  await expectKind(connected(url, { import: file }), 'already_exists');
  expect(await names(await connected(url))).toEqual(['a']);
});

test('a file that is none is refused, and leaves nothing', async () => {
  const db = await withNames(durable, 'a');
  const file = await db.export();
  const url = await durable.fresh();
  const text = new TextEncoder().encode('no archive at all'.repeat(100));
  for (const bad of [text, new Uint8Array(3), file.slice(0, 700)]) {
    await expectKind(connected(url, { import: bad }), 'corrupt');
  }
  const strange = archiveOf([{ name: '../t', bytes: new Uint8Array(1) }]);
  await expectKind(connected(url, { import: strange }), 'io');
  await expectKind(connected(url, { import: 'text' as never }), 'type');
  expect(await names(await connected(url, { import: file }))).toEqual(['a']);
});

test('an archive keeps names and bytes', async () => {
  const sizes = [0, 1, 511, 512, 513, 100_000];
  const files = sizes.map((size) => ({
    name: `file-${size}`,
    bytes: new Uint8Array(size).map((_, i) => i % 251),
  }));
  const archive = archiveOf(files);
  expect(archive.size % 512).toBe(0);
  expect(await filesOf(archive)).toEqual(files);
});
