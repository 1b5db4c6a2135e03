/**
 * Small results as they travel: those of one message as flat lists. Cloning an object with its
 * properties' names for each of them takes as long as reading a row by its key.
 *
 * Large results are not packed: their buffers are transferred.
 */

import type { Reply } from './protocol.js';
import type { WireColumn, WireField, WireResult } from './wire.js';

/** Results, in the order of their calls. */
export interface Packed {
  /** The names of statistics. */
  names: string[];
  /**
   * For each result the number of its call, its kind, fields, numbers of columns, rows and affected
   * rows, the values of its statistics, and the values of its columns.
   */
  list: unknown[];
}

/** What comes before the statistics of a result. */
type Head = [number, string, WireField[] | undefined, number, number, number];

/** A reply with a result that can be packed. */
type Small = { id: number; result: WireResult };

/** Packs each run of small results among replies. */
export function pack(replies: readonly Reply[]): (Reply | Packed)[] {
  const packed: (Reply | Packed)[] = [];
  let run: Small[] = [];
  const endRun = (): void => {
    // One by itself is cloned as quickly as its lists would be.
    packed.push(...(run.length > 1 ? [packRun(run)] : run));
    run = [];
  };
  for (const reply of replies) {
    if (isSmall(reply)) {
      run.push(reply);
    } else {
      endRun();
      packed.push(reply);
    }
  }
  endRun();
  return packed;
}

function isSmall(reply: Reply): reply is Small {
  const result = (reply as Partial<Small>).result as Partial<WireResult> | null | undefined;
  return (
    result?.statistics !== undefined && result.columns!.every(({ values }) => Array.isArray(values))
  );
}

function packRun(run: readonly Small[]): Packed {
  const names = Object.keys(run[0]!.result.statistics);
  const list: unknown[] = [];
  for (const { id, result } of run) {
    const { kind, fields, columns, rows, rowsAffected } = result;
    const statistics = result.statistics as unknown as Record<string, number>;
    list.push(id, kind, fields, columns.length, rows, rowsAffected);
    list.push(...names.map((name) => statistics[name]));
    columns.forEach(({ values }) => list.push(...(values as unknown[])));
  }
  return { names, list };
}

/** Calls back with the reply of each call. */
export function unpack(packed: readonly (Reply | Packed)[], each: (reply: Reply) => void): void {
  for (const part of packed) {
    if ('list' in part) {
      unpackRun(part, each);
    } else {
      each(part);
    }
  }
}

function unpackRun({ names, list }: Packed, each: (reply: Reply) => void): void {
  let at = 0;
  const take = (count: number): unknown[] => list.slice(at, (at += count));
  while (at < list.length) {
    const [id, kind, fields, width, rows, rowsAffected] = take(6) as Head;
    const statistics = Object.fromEntries(
      take(names.length).map((value, of) => [names[of], value]),
    );
    const columns = Array.from({ length: width }, () => ({ values: take(rows) }) as WireColumn);
    const result = { kind, columns, rows, rowsAffected, statistics } as unknown as WireResult;
    if (fields) {
      result.fields = fields;
    }
    each({ id, result });
  }
}
