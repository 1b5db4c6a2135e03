// The progress screen of the first start: one layer for each table, growing as its rows arrive.

import { progress, SCALES, type Progress } from '../load/load';
import { hash, outline, type Wave } from '../strata/geometry';
import { formatCount } from '../ui/format';
import { Icon, Mark } from '../ui/icons';

const WIDTH = 512;
const LAYER = 21;
const GAP = 2;
const WAVE: Wave = { width: WIDTH, amplitude: 4.5, seed: 2.1 };
const HUES = ['lilac', 'sky', 'mint', 'apricot', 'rose', 'lilac', 'sky', 'mint'];

export function Loading({ scale, stop }: { scale: number; stop?: () => void }) {
  const tables = progress.value;
  // The generator reports a table's rows only when it starts it.
  const expected = SCALES.find((each) => each.scale === scale)?.rows ?? 1;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const share = Math.min(1, rows / expected);
  const current = tables.find(({ state }) => state === 'loading');
  return (
    <main class="screen loading">
      <Mark size={40} />
      <h1>Generating the data</h1>
      <p>
        The TPC-H tables at scale {scale} are generated in this tab and stored in this browser.{' '}
        {stop ? 'Until they are complete, the present data stays.' : 'This happens only once.'}
      </p>
      <Growth tables={tables} />
      <ol class="growth-list numeric">
        {tables.map(({ table, rows: count, state }) => (
          <li key={table} class={`growth-row ${state}`}>
            <span>{table}</span>
            <span>{count > 0 ? formatCount(count) : ''}</span>
          </li>
        ))}
      </ol>
      <div
        class="loading-total numeric"
        role="progressbar"
        aria-label="Loading TPC-H"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={`${formatCount(rows)} rows${current ? `, ${current.table}` : ''}`}
      >
        <span style={{ '--share': share }} />
        <p>
          {formatCount(rows)} of {formatCount(expected)} rows
        </p>
      </div>
      {stop && (
        <button class="button outlined" type="button" onClick={stop}>
          <Icon name="stop" />
          Stop and keep the present data
        </button>
      )}
    </main>
  );
}

/** The layers; the first table is at the bottom. */
function Growth({ tables }: { tables: Progress[] }) {
  const height = tables.length * LAYER + 16;
  return (
    <svg class="growth" viewBox={`0 0 ${WIDTH} ${height}`} aria-hidden="true">
      {tables.map(({ table, rows, total }, index) => {
        const top = height - 8 - (index + 1) * LAYER + GAP;
        const path = outline(WAVE, top, top + LAYER - GAP);
        const share = total > 0 ? rows / total : 0;
        const own = `var(--${HUES[index % HUES.length]})`;
        const light = 0.2 + 0.6 * hash(table);
        return (
          <g key={table}>
            <defs>
              <linearGradient id={`growth-${table}`}>
                <stop offset="0" style={{ stopColor: own }} />
                <stop
                  offset={light}
                  style={{ stopColor: `color-mix(in oklab, ${own} 55%, var(--glint))` }}
                />
                <stop offset="1" style={{ stopColor: own }} />
              </linearGradient>
            </defs>
            <path class="growth-place" d={path} />
            <path
              class="growth-layer"
              d={path}
              fill={`url(#growth-${table})`}
              style={{ '--share': share }}
            />
          </g>
        );
      })}
    </svg>
  );
}
