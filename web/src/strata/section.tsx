// One table in detail: its rowstore, its segments (newest first), and the size of each column.

import { useEffect, useRef, useState } from 'preact/hooks';

import { changes, deletedRows, segmentBytes } from '../database/layers';
import { running, runScript } from '../database/run';
import type { SegmentReport, TableReport } from 'nacredb';
import { formatBytes, formatCount, plural } from '../ui/format';
import { Icon } from '../ui/icons';
import { Columns } from './columns';
import { hash, scaleFor } from './geometry';
import { Grains, rowsPerGrain } from './grains';
import { Stack } from './stack';

const LARGEST_SEGMENT = 168;

export function Section({ table }: { table: TableReport }) {
  const [lit, setLit] = useState<string | null>(null);
  const [place, width] = useWidth();
  const seed = hash(table.name) * 6;
  const scale = scaleFor(table, Math.min(LARGEST_SEGMENT, 44 + table.columns.length * 8));
  const changed = changes.value[table.name] ?? 0;

  return (
    <article class="section" key={table.name} data-table={table.name}>
      <header class="section-head">
        <div>
          <h3>{table.name}</h3>
          <p class="numeric">{summary(table)}</p>
        </div>
        <button
          class="button outlined"
          type="button"
          disabled={running.value || table.rowstoreRows === 0}
          onClick={() =>
            void runScript(`optimize table "${table.name.replaceAll('"', '""')}" flush`)
          }
          title={
            table.rowstoreRows === 0
              ? 'The rowstore is empty'
              : 'Write the rowstore as a new segment'
          }
        >
          <Icon name="flush" />
          Flush
        </button>
      </header>
      <div
        class={changed > 0 ? 'section-drawing changed' : 'section-drawing'}
        key={changed}
        ref={place}
      >
        <Layer name="rowstore" note={rowstoreNote(table)} />
        {table.rowstoreRows > 0 && <Grains rows={table.rowstoreRows} width={width} seed={seed} />}
        {newestFirst(table).map(({ segment, ordinal }) => (
          <div class="section-segment" key={segment.id}>
            <Layer
              name={`segment ${ordinal}`}
              note={segmentNote(segment, table)}
              deleted={segment.deleted}
            />
            {width > 0 && (
              <Stack
                segment={segment}
                scale={scale}
                wave={{ width, amplitude: 2.6, seed }}
                lit={lit}
                onPoint={setLit}
              />
            )}
          </div>
        ))}
      </div>
      <Columns table={table} lit={lit} onPoint={setLit} />
    </article>
  );
}

function Layer({ name, note, deleted = 0 }: { name: string; note: string; deleted?: number }) {
  return (
    <p class="layer-label numeric">
      <span>{name}</span>
      <span>
        {note}
        {deleted > 0 && <em>{plural(deleted, 'row')} deleted</em>}
      </span>
    </p>
  );
}

/** Segment ids are log positions, so segments are numbered here from the oldest. */
const newestFirst = (table: TableReport) =>
  table.segments.map((segment, index) => ({ segment, ordinal: index + 1 })).toReversed();

function summary(table: TableReport): string {
  const deleted = deletedRows(table);
  const parts = [plural(table.rows, 'row'), formatBytes(segmentBytes(table) + table.rowstoreBytes)];
  if (deleted > 0) parts.push(`${formatCount(deleted)} deleted`);
  return parts.join(' · ');
}

function rowstoreNote({ rowstoreRows, rowstoreBytes }: TableReport): string {
  if (rowstoreRows === 0) return 'empty';
  const each = rowsPerGrain(rowstoreRows);
  return `${plural(rowstoreRows, 'row')} · ${formatBytes(rowstoreBytes)}${each > 1 ? ` · one grain per ${each} rows` : ''}`;
}

/** A table of several sorted runs also says which run a segment belongs to. */
function segmentNote(segment: SegmentReport, { segments }: TableReport): string {
  const runs = [...new Set(segments.map(({ run }) => run))];
  const parts = [plural(segment.rows, 'row'), formatBytes(segment.bytes)];
  if (runs.length > 1) parts.push(`run ${runs.indexOf(segment.run) + 1}, level ${segment.level}`);
  return parts.join(' · ');
}

function useWidth() {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current!;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  });
  return [place, width] as const;
}
