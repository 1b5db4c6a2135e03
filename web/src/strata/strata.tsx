// The storage view: every table as a small sample to choose from, and the chosen one in detail.

import { layers, segmentBytes, selectedTable, storedBytes } from '../database/layers';
import type { TableReport } from 'nacredb';
import { formatBytes, formatCount, plural } from '../ui/format';
import { FINE, hash, rootBytes } from './geometry';
import { Counters } from './counters';
import { Section } from './section';
import { Stack } from './stack';
import { Tabs } from './tabs';
import { Writer } from './writer';

const SAMPLE_WIDTH = 64;
/** Height of the largest segment among the samples. */
const SAMPLE_HEIGHT = 24;
/** Segments drawn per sample, the newest; the section below shows all of them. */
const SAMPLE_SEGMENTS = 3;

export function Strata() {
  const tables = layers.value;
  const selected = tables.find((table) => table.name === selectedTable.value) ?? tables[0];
  return (
    <aside class="strata" aria-label="Storage">
      <header class="strata-head">
        <h2>Storage</h2>
        <p class="numeric">
          {plural(tables.length, 'table')} · {formatBytes(storedBytes.value)}
        </p>
      </header>
      <Counters />
      <Writer />
      <Tabs />
      <Samples tables={tables} selected={selected?.name} />
      {selected && <Section table={selected} />}
    </aside>
  );
}

function Samples({ tables, selected }: { tables: TableReport[]; selected: string | undefined }) {
  const largest = Math.max(1, ...tables.flatMap((table) => table.segments.map(rootBytes)));
  const ordered = tables.toSorted((a, b) => segmentBytes(b) - segmentBytes(a));
  return (
    <ul class="samples">
      {ordered.map((table) => (
        <li key={table.name}>
          <button
            type="button"
            class="sample"
            aria-pressed={table.name === selected}
            onClick={() => (selectedTable.value = table.name)}
            title={`${table.name}: ${plural(table.rows, 'row')}`}
          >
            <span class="sample-drawing">
              {table.rowstoreRows > 0 && <i />}
              {table.segments
                .toReversed()
                .slice(0, SAMPLE_SEGMENTS)
                .map((segment) => (
                  <Stack
                    key={segment.id}
                    segment={segment}
                    scale={SAMPLE_HEIGHT / largest}
                    grain={FINE}
                    wave={{ width: SAMPLE_WIDTH, amplitude: 1, seed: hash(table.name) * 6 + 0.5 }}
                  />
                ))}
            </span>
            <span class="sample-name">{table.name}</span>
            <span class="sample-rows numeric">{formatCount(table.rows)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
