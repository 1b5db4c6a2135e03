import { describe, expect, test } from 'vitest';
import type { Rows, Session } from './engine.js';
import { Streams } from './streams.js';

const session = { cancel: () => {} } as Session;

/** Rows that record their calls. */
function rowsOf(chunks: number, fail = Infinity) {
  const calls: string[] = [];
  const rows = {
    fields: () => [],
    ended: () => calls.filter((call) => call.startsWith('next')).length >= chunks,
    next(wanted: number) {
      calls.push(`next ${wanted}`);
      if (calls.length >= fail) {
        throw new Error('no');
      }
      return { rows: 1 };
    },
    arrow(wanted: number) {
      calls.push(`arrow ${wanted}`);
      return new Uint8Array();
    },
    cancel: () => void calls.push('cancel'),
    free: () => void calls.push('free'),
  };
  return { rows: rows as unknown as Rows, calls };
}

describe('the streams of a connection', () => {
  test('compute what is asked for, in growing chunks, and end with the last', () => {
    const streams = new Streams();
    const { rows, calls } = rowsOf(7);
    expect(streams.open(1, 'columns', (opened) => opened(session, () => rows))).toMatchObject({
      fields: [],
      done: false,
    });
    expect(calls).toEqual(['next 1024']);
    for (let at = 0; at < 6; at++) {
      expect(streams.next(1)).toMatchObject({ done: at === 5 });
    }
    const sizes = [1024, 2048, 4096, 8192, 16384, 16384, 16384].map((size) => `next ${size}`);
    expect(calls).toEqual([...sizes, 'cancel', 'free']);
    expect(() => streams.next(1)).toThrow('ended');
    streams.end(1);
    expect(calls.at(-1)).toBe('free');
  });

  test('are freed when they fail, when they are ended, and when all end', () => {
    const streams = new Streams();
    const [failing, ended, other] = [rowsOf(9, 2), rowsOf(9), rowsOf(9)];
    [failing, ended, other].forEach(({ rows }, id) =>
      streams.open(id, 'columns', (opened) => opened(session, () => rows)),
    );
    expect(() => streams.next(0)).toThrow('no');
    streams.end(1);
    streams.endAll();
    for (const { calls } of [failing, ended, other]) {
      expect(calls.filter((call) => call === 'free')).toHaveLength(1);
    }
    expect(() =>
      streams.open(3, 'columns', () => {
        throw new Error('not so');
      }),
    ).toThrow('not so');
    expect(() => streams.next(3)).toThrow('ended');
  });

  test('can be ended before their statement runs', async () => {
    const streams = new Streams();
    const turn = Promise.resolve();
    let ran = false;
    const statement = () => (ran = true);
    const opening = streams.open(1, 'arrow', (opened) =>
      turn.then(() => opened(session, statement)),
    );
    streams.end(1);
    await expect(opening).rejects.toMatchObject({ kind: 'cancelled' });
    expect(ran).toBe(false);
  });

  test('can be ended while their statement waits', async () => {
    const streams = new Streams();
    const { rows, calls } = rowsOf(9);
    const opening = streams.open(1, 'arrow', (opened) =>
      opened(session, () => Promise.resolve(rows)),
    );
    streams.end(1);
    await expect(opening).rejects.toMatchObject({ kind: 'cancelled' });
    expect(calls).toEqual(['free']);
  });
});
