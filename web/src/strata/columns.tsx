// The legend of the drawing: each column's encoding, its size, and the ratio to its size without
// encoding.

import type { TableReport } from 'nacredb';
import { formatBytes, formatShare, plural } from '../ui/format';
import { hue } from './encodings';

export interface ColumnsOptions {
  table: TableReport;
  lit: string | null;
  onPoint: (column: string | null) => void;
}

export function Columns({ table, lit, onPoint }: ColumnsOptions) {
  return (
    <table class="columns numeric" onPointerLeave={() => onPoint(null)}>
      <thead>
        <tr>
          <th scope="col">column</th>
          <th scope="col">encoding</th>
          <th scope="col">stored</th>
          <th scope="col">
            <span class="hidden">share of the unencoded size</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {table.columns.map((column) => {
          const share = column.rawBytes > 0 ? column.bytes / column.rawBytes : 0;
          return (
            <tr
              key={column.name}
              class={lit === column.name ? 'lit' : undefined}
              onPointerEnter={() => onPoint(column.name)}
            >
              <th scope="row" title={column.type}>
                {column.name}
              </th>
              <td>
                <Encodings table={table} column={column} />
              </td>
              <td>{formatBytes(column.bytes)}</td>
              <td
                title={`${formatShare(column.bytes, column.rawBytes)} of ${formatBytes(column.rawBytes)} unencoded`}
              >
                <span class="ratio" style={{ '--share': Math.min(1, share) }} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** A swatch for each encoding in use, and the name of the one with the most bytes. */
function Encodings({
  table,
  column,
}: {
  table: TableReport;
  column: TableReport['columns'][number];
}) {
  const bytes = new Map<string, number>();
  for (const segment of table.segments) {
    const stored = segment.columns.find(({ name }) => name === column.name);
    if (stored) bytes.set(stored.encoding, (bytes.get(stored.encoding) ?? 0) + stored.bytes);
  }
  const ordered = column.encodings.toSorted(
    (a, b) => (bytes.get(b.name) ?? 0) - (bytes.get(a.name) ?? 0),
  );
  const list = ordered.map(({ name, segments }) => `${name} in ${plural(segments, 'segment')}`);
  return (
    <span class="encodings" title={list.join(', ')}>
      {ordered.map(({ name }) => (
        <i key={name} style={{ '--hue': `var(--${hue(name)})` }} />
      ))}
      {ordered[0]?.name}
    </span>
  );
}
