// A segment drawn as a stack of layers, one for each column.

import {
  bands,
  bottom,
  outline,
  pits,
  WIDE_PIT,
  type Band,
  type Grain,
  type Wave,
} from './geometry';
import { hue, neighbour } from './encodings';
import type { SegmentReport } from 'nacredb';

const FADED = 0.78;

export interface StackOptions {
  segment: SegmentReport;
  scale: number;
  wave: Wave;
  grain?: Grain;
  /** The highlighted column, if any. */
  lit?: string | null;
  onPoint?: (column: string | null) => void;
}

export function Stack({ segment, scale, wave, grain, lit, onPoint }: StackOptions) {
  const margin = wave.amplitude * 1.5 + 1;
  const stack = bands(segment, scale, margin, grain);
  const end = bottom(stack);
  const height = end + margin;
  // Deleted rows are slits through all columns; where many were deleted, the layers fade.
  const all = pits(segment, wave.width, wave.seed);
  const slits = all.filter((pit) => pit.width < WIDE_PIT);
  const faded = all.filter((pit) => pit.width >= WIDE_PIT);
  const name = `${wave.seed.toFixed(3)}-${segment.id}`.replace(/\W/g, '_');
  return (
    <svg
      class="stack"
      width={wave.width}
      height={height}
      viewBox={`0 0 ${wave.width} ${height}`}
      aria-hidden="true"
    >
      <defs>
        {stack.map((band, index) => (
          <Sheen key={index} id={`sheen-${name}-${index}`} band={band} wave={wave} />
        ))}
      </defs>
      {faded.length > 0 && (
        <mask id={`faded-${name}`}>
          <rect width={wave.width} height={height} fill="white" />
          {faded.map((pit, index) => (
            <rect
              key={index}
              x={pit.x}
              width={pit.width}
              height={height}
              fill="black"
              opacity={FADED}
            />
          ))}
        </mask>
      )}
      <g
        mask={faded.length > 0 ? `url(#faded-${name})` : undefined}
        onPointerLeave={onPoint && (() => onPoint(null))}
      >
        {stack.map((band, index) => (
          <path
            key={index}
            d={outline(wave, band.y, band.y + band.thickness)}
            fill={`url(#sheen-${name}-${index})`}
            class={lit == null ? undefined : band.column.name === lit ? 'lit' : 'dim'}
            onPointerEnter={onPoint && (() => onPoint(band.column.name))}
          />
        ))}
      </g>
      {slits.map((pit, index) => (
        <rect
          key={index}
          class="pit"
          x={pit.x}
          y={margin - wave.amplitude}
          width={pit.width}
          height={end - margin + 2 * wave.amplitude}
          rx={Math.min(1, pit.width / 2)}
        />
      ))}
    </svg>
  );
}

/**
 * Imitates interference: the highlight's position follows from the depth, and beside it the hue
 * shifts to a neighbour.
 */
function Sheen({ id, band, wave }: { id: string; band: Band; wave: Wave }) {
  const own = `var(--${hue(band.column.encoding)})`;
  const side = `var(--${neighbour(band.column.encoding)})`;
  const light = (0.3 + 0.5 * Math.abs(Math.sin(band.y * 0.021 + wave.seed))).toFixed(3);
  const stop = (offset: number | string, color: string) => (
    <stop offset={offset} style={{ stopColor: color }} />
  );
  return (
    <linearGradient id={id} x1="0" x2="1" y1="0" y2="0">
      {stop(0, own)}
      {stop(Math.max(0, Number(light) - 0.26), `color-mix(in oklab, ${own} 62%, ${side})`)}
      {stop(light, `color-mix(in oklab, ${own} 58%, var(--glint))`)}
      {stop(Math.min(1, Number(light) + 0.2), own)}
      {stop(1, `color-mix(in oklab, ${own} 78%, ${side})`)}
    </linearGradient>
  );
}
