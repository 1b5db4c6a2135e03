import { tableFromIPC } from 'apache-arrow';
import type { Database } from 'nacredb';
import { describe, expect, test } from 'vitest';
import type { Answer, Arguments, Method } from '../../../worker/shared/protocol.js';
import type { WireStream } from '../../../worker/shared/wire.js';
import { ResultStream } from '../src/stream.js';
import { connected, expectKind, places, withNames, type Place } from './testing.js';
import type { Transport } from '../src/transport.js';

const ROWS = 60_000;
/** Fails at row 50,000. */
const FAILING =
  'select id, cast(case when id < 50000 then 0 else id end as tinyint) as small from big';

async function withBig(place: Place): Promise<Database> {
  const db = await connected(await place.fresh());
  const numbers = `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${ROWS})`;
  await db.exec(`create table big (id int primary key, name text);
    insert into big ${numbers} select i, concat('name ', i) from n;
    optimize table big flush`);
  return db;
}

async function all<T>(from: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of from) {
    items.push(item);
  }
  return items;
}

describe.each(places)('a stream in $name', (place) => {
  test('gives rows, batches and Arrow', async () => {
    const db = await withBig(place);
    const sql = 'select id, name from big';
    let next = 0;
    for await (const row of db.stream<{ id: number; name: string }>(sql).rows()) {
      if (row.id !== next || row.name !== `name ${next}`) {
        expect(row).toEqual({ id: next, name: `name ${next}` });
      }
      next++;
    }
    expect(next).toBe(ROWS);

    const batches = await all(db.stream(sql).batches());
    expect(batches.length).toBeGreaterThan(4);
    expect(batches[0]!.columns.map((column) => column.name)).toEqual(['id', 'name']);
    expect(batches.reduce((sum, batch) => sum + batch.rowCount, 0)).toBe(ROWS);
    // The first batch arrived when only a small part had been read.
    expect(batches[0]!.statistics.rowsRead).toBeLessThan(ROWS / 10);
    expect(batches.at(-1)!.statistics.rowsRead).toBe(ROWS);

    const parts = (await all(db.stream(sql))).map((part) => tableFromIPC(part));
    expect(parts.length).toBe(batches.length);
    expect(parts.reduce((sum, part) => sum + part.numRows, 0)).toBe(ROWS);
    expect(
      parts
        .at(-1)!
        .getChild('name')!
        .get(parts.at(-1)!.numRows - 1),
    ).toBe(`name ${ROWS - 1}`);
  });

  test('takes parameters, several statements, and no rows', async () => {
    const db = await withNames(place, 'a', 'b', 'c');
    const names = async (from: ResultStream) => (await all(from.rows())).map((row) => row['name']);
    expect(await names(db.stream('select name from t where id > ? order by id', [1]))).toEqual([
      'b',
      'c',
    ]);
    expect(await names(db.stream('select name from t where id = :id', { id: 3 }))).toEqual(['c']);
    expect(
      await names(db.stream("insert into t values (4, 'd'); select name from t where id = 4")),
    ).toEqual(['d']);
    expect(await names(db.stream("insert into t values (5, 'e') returning name"))).toEqual(['e']);
    const none = 'select * from t where id > 100';
    expect(await names(db.stream(none))).toEqual([]);
    const [batch, ...others] = await all(db.stream(none).batches());
    expect([batch!.rowCount, batch!.columns.length, others.length]).toEqual([0, 2, 0]);
    expect(
      (await all(db.stream(none))).map((part) => tableFromIPC(part).schema.fields.length),
    ).toEqual([2]);
    // Nothing runs before the first read.
    db.stream('delete from t');
    expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 5n }]);
  });

  test('of a prepared statement', async () => {
    const db = await withBig(place);
    const statement = await db.prepare<{ id: number }>('select id from big where id >= ?');
    let sum = 0;
    for await (const row of statement.iterate([ROWS - 3])) {
      sum += row.id;
    }
    expect(sum).toBe(3 * ROWS - 6);
    for await (const row of statement.iterate([0])) {
      expect(row.id).toBe(0);
      break;
    }
    const [part] = await all(statement.stream([ROWS - 1]));
    expect(tableFromIPC(part!).numRows).toBe(1);
    await statement.close();
    await expectKind(all(statement.iterate([0])), 'closed');
  });

  test('ends with the error of a row, at that row or before it', async () => {
    const db = await withBig(place);
    let seen = 0;
    const read = async () => {
      for await (const batch of db.stream(FAILING).batches()) {
        seen += batch.rowCount;
      }
    };
    await expectKind(read(), 'type', { sqlstate: '22003' });
    expect(seen).toBeGreaterThan(10_000);
    for await (const row of db.stream(FAILING).rows()) {
      if (row['id'] === 20_000) {
        break;
      }
    }
    await expectKind(all(db.stream('select nothing from big')), 'not_found');
    await expectKind(all(db.stream('selct')), 'syntax');
    expect((await db.query('select count(*) as n from big')).rows).toEqual([{ n: BigInt(ROWS) }]);
  });

  test('shows its snapshot whatever changes meanwhile', async () => {
    const db = await withBig(place);
    const other = db.stream('select id from big').rows();
    expect((await other.next()).value).toEqual({ id: 0 });
    await db.transaction(async (tx) => {
      let seen = 0;
      for await (const row of tx.stream<{ id: number }>('select id from big').rows()) {
        if (row.id % 10_000 === 0) {
          await tx.query('update big set id = id + 1000000 where id = ?', [row.id]);
        }
        seen++;
      }
      expect(seen).toBe(ROWS);
      await tx.exec('delete from big where id < 1000000');
    });
    expect((await db.query('select count(*) as n from big')).rows).toEqual([{ n: 6n }]);
    await db.exec('drop table big');
    expect((await all(other)).length).toBe(ROWS - 1);
  });

  test('is cancelled by its signal at any time', async () => {
    const db = await withBig(place);
    await expectKind(
      all(db.stream('delete from big', [], { signal: AbortSignal.abort() }).rows()),
      'cancelled',
    );
    const controller = new AbortController();
    let seen = 0;
    const read = async () => {
      for await (const batch of db
        .stream('select * from big', [], { signal: controller.signal })
        .batches()) {
        seen += batch.rowCount;
        controller.abort('enough');
      }
    };
    await expectKind(read(), 'cancelled', { cause: 'enough' });
    expect(seen).toBeLessThan(ROWS / 10);
    expect((await db.query('select count(*) as n from big')).rows).toEqual([{ n: BigInt(ROWS) }]);
  });

  test('does nothing when it is cancelled before its statement runs', async () => {
    const db = await withNames(place, 'a');
    const controller = new AbortController();
    let waiting: Promise<unknown> | null = null;
    await db.transaction(async (tx) => {
      await tx.query("update t set name = 'inside' where id = 1");
      waiting = db.query("update t set name = 'outside' where id = 1");
      const { signal } = controller;
      const reading = all(db.stream("insert into t values (2, 'b') returning id", [], { signal }));
      // The call has been sent.
      await tx.query('select 1');
      controller.abort();
      await expectKind(reading, 'cancelled');
    });
    await waiting;
    expect((await db.query('select * from t')).rows).toEqual([{ id: 1n, name: 'outside' }]);
  });

  test('can be read once, and ends with the database', async () => {
    const db = await withBig(place);
    const stream = db.stream('select id from big');
    const rows = stream.rows();
    await rows.next();
    await expectKind(all(stream.rows()), 'closed');
    await db.close();
    await expectKind(all(rows), 'closed');
    await expectKind(all(db.stream('select 1')), 'closed');
  });
});

/** Answers chunks of one row and records the calls. */
class Recorder implements Transport {
  readonly calls: string[] = [];
  constructor(
    readonly ahead: boolean,
    readonly chunks: number,
  ) {}

  async call<M extends Method>(method: M, ..._: Arguments<M>): Promise<Answer<M>> {
    this.calls.push(method);
    const chunks = this.calls.filter((call) => call === 'more').length;
    return {
      chunk: new Uint8Array(1),
      fields: [],
      done: chunks + 1 === this.chunks,
    } as WireStream as Answer<M>;
  }

  stream(options = {}): ResultStream {
    const client = { transport: this, types: {} };
    return new ResultStream(client, options, (id, form) =>
      this.call('stream', 0, id, form, '', []),
    );
  }

  end(): void {}
}

describe.each([true, false])('the number of chunks requested, ahead: %s', (ahead) => {
  const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

  test('is at most one more than the reader has asked for', async () => {
    const asked = new Recorder(ahead, 100);
    const parts = asked.stream()[Symbol.asyncIterator]();
    await settled();
    expect(asked.calls).toEqual([]);
    for (let looked = 1; looked < 10; looked++) {
      await parts.next();
      await settled();
      expect(asked.calls).toEqual(['stream', ...Array(looked - 1 + Number(ahead)).fill('more')]);
    }
    await parts.return();
    expect(asked.calls.at(-1)).toBe('endStream');
    expect(await parts.next()).toEqual({ done: true, value: undefined });
  });

  test('does not grow after the last chunk', async () => {
    const asked = new Recorder(ahead, 3);
    expect(await all(asked.stream())).toHaveLength(3);
    expect(asked.calls).toEqual(['stream', 'more', 'more']);
    const one = new Recorder(ahead, 1);
    for await (const _ of one.stream()) {
      break;
    }
    expect(one.calls).toEqual(['stream']);
  });

  test('stops growing at an abort, even if the worker does not answer', async () => {
    const asked = new Recorder(ahead, 100);
    const controller = new AbortController();
    const parts = asked.stream({ signal: controller.signal })[Symbol.asyncIterator]();
    await parts.next();
    asked.call = () => new Promise(() => {});
    const next = parts.next();
    controller.abort();
    await expectKind(next, 'cancelled');
  });

  test('stops growing at an abort, even if the reader does not return', async () => {
    const asked = new Recorder(ahead, 100);
    const controller = new AbortController();
    const parts = asked.stream({ signal: controller.signal })[Symbol.asyncIterator]();
    await parts.next();
    controller.abort();
    expect(asked.calls.at(-1)).toBe('endStream');
    await expectKind(parts.next(), 'cancelled');
    expect(asked.calls.filter((call) => call === 'endStream')).toHaveLength(1);
  });
});
