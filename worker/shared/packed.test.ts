import { expect, test } from 'vitest';
import { pack, unpack, type Packed } from './packed.js';
import type { Reply } from './protocol.js';
import type { WireField, WireResult } from './wire.js';

function result(columns: unknown[][], rows: number, fields?: WireField[]): WireResult {
  const statistics = {
    ...{ rowsRead: 1, bytesRead: 2, segmentsRead: 3, segmentsSkipped: 4 },
    ...{ blocksRead: 5, blocksSkipped: 6, pointReads: 7, elapsedMs: 0.5 },
  };
  const made = {
    ...{ kind: 'query', columns: columns.map((values) => ({ values })), rows },
    ...{ rowsAffected: rows + 10, statistics },
  };
  return fields === undefined ? made : { ...made, fields };
}

const read = (packed: (Reply | Packed)[]): Reply[] => {
  const replies: Reply[] = [];
  unpack(structuredClone(packed), (reply) => replies.push(reply));
  return replies;
};

test('replies are read back as they were, in their order', () => {
  const fields: WireField[] = [{ name: 'a', type: 'BIGINT', code: 3, scale: 0 }];
  const large = result([[]], 1);
  large.columns[0]!.values = new Float64Array([1, 2]);
  const replies: Reply[] = [
    {
      id: 3,
      result: result(
        [
          [1n, 2n],
          ['x', null],
        ],
        2,
        fields,
      ),
    },
    { id: 4, result: result([], 0) },
    { id: 5, error: { kind: 'limit', message: 'full' } as never },
    { id: 6, result: undefined as never },
    { id: 7, result: { rows: 5, total: 9 } },
    { id: 8, result: large },
    { id: 9, result: result([[], []], 0, fields) },
    { id: 10, moved: true },
  ];
  expect(read(pack(replies))).toEqual(replies);
});

test('small results of one message are one part of it', () => {
  const fields: WireField[] = [{ name: 'a', type: 'INT', code: 2, scale: 0 }];
  const replies = [1, 2, 3].map((id): Reply => ({ id, result: result([[id]], 1, fields) }));
  const packed = pack(replies);
  expect(packed).toHaveLength(1);
  // Columns that are the same object travel once.
  const [first, second] = read(packed).map((reply) => (reply as { result: WireResult }).result);
  expect(first!.fields).toBe(second!.fields);
});
