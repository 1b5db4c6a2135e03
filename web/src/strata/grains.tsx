// The rowstore, drawn as loose grains above the layers.

import { hash } from './geometry';

const MAX_GRAINS = 360;
/** Distance between grains: large for few rows, small for many. */
const pitch = (count: number): number => (count <= 24 ? 11 : 7);

/** Number of rows that one grain stands for. */
export const rowsPerGrain = (rows: number): number => Math.max(1, Math.ceil(rows / MAX_GRAINS));

export function Grains({ rows, width, seed }: { rows: number; width: number; seed: number }) {
  const count = Math.ceil(rows / rowsPerGrain(rows));
  const step = pitch(count);
  const perLine = Math.max(1, Math.floor((width - 8) / step));
  const lines = Math.max(1, Math.ceil(count / perLine));
  const height = lines * step + 6;
  return (
    <svg
      class="grains"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden="true"
    >
      {Array.from({ length: count }, (_, index) => {
        const line = Math.floor(index / perLine);
        const jitter = hash(String(index), seed) - 0.5;
        // Lines are centred, so that the grains form a small heap.
        const inLine = Math.min(perLine, count - line * perLine);
        const x = width / 2 + ((index % perLine) - (inLine - 1) / 2) * step + jitter * 2.4;
        const y = height - step / 2 - 1 - line * step + jitter * 2;
        return (
          <circle
            key={index}
            cx={x}
            cy={y}
            r={step * 0.29 + jitter * 0.7}
            style={{ '--i': index % 12 }}
          />
        );
      })}
    </svg>
  );
}
