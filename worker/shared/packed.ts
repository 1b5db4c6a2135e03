/**
 * Small results as they travel: those of one message as flat lists. Cloning an object with its
 * properties' names for each of them takes as long as reading a row by its key.
 *
 * Large results are not packed: their buffers are transferred.
 */

import type { Reply } from './protocol.js';
import type { Statistics, WireColumn, WireField, WireResult } from './wire.js';

/** Results, in the order of their calls. */
export interface Packed {
  /** The number of each call. */
  ids: number[];
  kinds: string[];
  /** The columns' names and types, absent as in the result. */
  fields: (WireField[] | undefined)[];
  /** For each result the numbers of its columns, rows and affected rows. */
  sizes: number[];
  /** For each result the values of its statistics. */
  statistics: Float64Array;
  /** The values of each result, column by column. */
  values: unknown[];
}

/** Values of one result's statistics. */
const STATISTICS = 8;
/** Numbers of one result in `sizes`. */
const SIZES = 3;

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
  const packed: Packed = {
    ids: [],
    kinds: [],
    fields: [],
    sizes: [],
    statistics: new Float64Array(run.length * STATISTICS),
    values: [],
  };
  run.forEach(({ id, result }, at) => {
    packed.ids.push(id);
    packed.kinds.push(result.kind);
    packed.fields.push(result.fields);
    packed.sizes.push(result.columns.length, result.rows, result.rowsAffected);
    packed.statistics.set(statisticsOf(result), at * STATISTICS);
    for (const { values } of result.columns) {
      packed.values.push(...(values as unknown[]));
    }
  });
  return packed;
}

/** Calls back with the reply of each call. */
export function unpack(packed: readonly (Reply | Packed)[], each: (reply: Reply) => void): void {
  for (const part of packed) {
    if ('ids' in part) {
      unpackRun(part, each);
    } else {
      each(part);
    }
  }
}

function unpackRun(
  { ids, kinds, fields, sizes, ...rest }: Packed,
  each: (reply: Reply) => void,
): void {
  let next = 0;
  ids.forEach((id, at) => {
    const rows = sizes[at * SIZES + 1]!;
    const columns = Array.from({ length: sizes[at * SIZES]! }, (): WireColumn => {
      next += rows;
      return { values: rest.values.slice(next - rows, next) };
    });
    const result: WireResult = {
      kind: kinds[at]!,
      columns,
      rows,
      rowsAffected: sizes[at * SIZES + 2]!,
      statistics: toStatistics(rest.statistics, at * STATISTICS),
    };
    if (fields[at] !== undefined) {
      result.fields = fields[at];
    }
    each({ id, result });
  });
}

function statisticsOf({ statistics }: WireResult): number[] {
  const { rowsRead, bytesRead, segmentsRead, segmentsSkipped } = statistics;
  const { blocksRead, blocksSkipped, pointReads, elapsedMs } = statistics;
  return [
    ...[rowsRead, bytesRead, segmentsRead, segmentsSkipped],
    ...[blocksRead, blocksSkipped, pointReads, elapsedMs],
  ];
}

function toStatistics(values: Float64Array, at: number): Statistics {
  return {
    rowsRead: values[at]!,
    bytesRead: values[at + 1]!,
    segmentsRead: values[at + 2]!,
    segmentsSkipped: values[at + 3]!,
    blocksRead: values[at + 4]!,
    blocksSkipped: values[at + 5]!,
    pointReads: values[at + 6]!,
    elapsedMs: values[at + 7]!,
  };
}
