/**
 * How the engine makes the objects of small results: with one call for each object, because a call
 * out of WebAssembly for each property takes as long as reading a row.
 */

const KINDS = ['query', 'write', 'ddl', 'control'];

/** Adds a column of single values (`WireColumn`) to others, and answers the array of its values. */
export function addColumn(columns) {
  const values = [];
  columns.push({ values });
  return values;
}

/** Makes a `WireResult`, without fields that the caller has. */
export function makeResult(
  kind,
  fields,
  columns,
  rows,
  rowsAffected,
  rowsRead,
  bytesRead,
  segmentsRead,
  segmentsSkipped,
  blocksRead,
  blocksSkipped,
  pointReads,
  elapsedMs,
) {
  const statistics = {
    rowsRead,
    bytesRead,
    segmentsRead,
    segmentsSkipped,
    blocksRead,
    blocksSkipped,
    pointReads,
    elapsedMs,
  };
  const result = { kind: KINDS[kind], columns, rows, rowsAffected, statistics };
  if (fields !== undefined) {
    result.fields = fields;
  }
  return result;
}
