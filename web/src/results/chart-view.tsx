// A result drawn as bars, as a line or as points, with plain HTML and SVG.

import { useEffect, useRef, useState } from 'preact/hooks';

import type { StatementResult } from '../database/types';
import { formatCount } from '../ui/format';
import { chartOf, measures, ticks, type Chart, type Point } from './chart';

const HEIGHT = 320;
const MARGIN = { top: 14, right: 18, bottom: 34, left: 72 };
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 2 });
const exact = new Intl.NumberFormat('en-US', { maximumFractionDigits: 4 });

export function ChartView({ answer }: { answer: StatementResult }) {
  const choices = measures(answer);
  const [measure, setMeasure] = useState(choices[0]!);
  const chosen = choices.includes(measure) ? measure : choices[0]!;
  const chart = chartOf(answer, chosen);
  return (
    <div class="chart">
      {choices.length > 1 && (
        <label class="chart-measure">
          <span>Column</span>
          <select
            value={String(chosen)}
            onChange={({ currentTarget }) => setMeasure(Number(currentTarget.value))}
          >
            {choices.map((at) => (
              <option key={at} value={String(at)}>
                {answer.columns[at]!.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {chart === undefined ? (
        <p>This column has no values to draw.</p>
      ) : chart.kind === 'bars' ? (
        <Bars chart={chart} />
      ) : (
        <Plot chart={chart} />
      )}
    </div>
  );
}

function Bars({ chart }: { chart: Extract<Chart, { kind: 'bars' }> }) {
  const least = Math.min(0, ...chart.bars.map(({ value }) => value));
  const most = Math.max(0, ...chart.bars.map(({ value }) => value));
  const span = most - least || 1;
  return (
    <table class="chart-bars numeric">
      <caption class="hidden">{chart.label}</caption>
      <tbody>
        {chart.bars.map(({ name, value }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>{exact.format(value)}</td>
            <td aria-hidden="true">
              <i
                style={{
                  '--from': (Math.min(0, value) - least) / span,
                  '--share': Math.abs(value) / span,
                }}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Plot({ chart }: { chart: Exclude<Chart, { kind: 'bars' }> }) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const element = place.current!;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { points } = chart;
  const ys = points.map(({ y }) => y);
  const [low, high] = extent(ys);
  // A line from zero, unless that would flatten it.
  const bottom = low > 0 && low < 0.6 * high ? 0 : low;
  const [first, last] = extent(points.map(({ x }) => x));
  const inner = Math.max(40, width - MARGIN.left - MARGIN.right);
  const tall = HEIGHT - MARGIN.top - MARGIN.bottom;
  const px = (x: number) => MARGIN.left + (inner * (x - first)) / (last - first || 1);
  const py = (y: number) => MARGIN.top + tall - (tall * (y - bottom)) / (high - bottom || 1);
  const count = formatCount(points.length);
  return (
    <div class="chart-plot" ref={place}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-label={`${chart.label} over ${chart.axis}, ${count} points, from ${exact.format(low)} to ${exact.format(high)}`}
      >
        {ticks(bottom, high, 5).map((y) => (
          <g key={y}>
            <line x1={MARGIN.left} x2={MARGIN.left + inner} y1={py(y)} y2={py(y)} />
            <text x={MARGIN.left - 10} y={py(y)} dy="0.35em" text-anchor="end">
              {compact.format(y)}
            </text>
          </g>
        ))}
        {xTicks(chart, first, last, Math.max(2, Math.floor(inner / 110))).map((x, index, all) => (
          <text
            key={x}
            x={px(x)}
            y={HEIGHT - 12}
            text-anchor={index === 0 ? 'start' : index === all.length - 1 ? 'end' : 'middle'}
          >
            {chart.time ? new Date(x).toISOString().slice(0, 10) : exact.format(x)}
          </text>
        ))}
        {chart.kind === 'line' ? (
          <path class="chart-line" d={path(points, px, py)} />
        ) : (
          points.map(({ x, y }, index) => (
            <circle key={index} class="chart-point" cx={px(x)} cy={py(y)} r="2.5" />
          ))
        )}
      </svg>
      <p>
        {chart.label} over {chart.axis}
      </p>
    </div>
  );
}

function xTicks({ time }: { time: boolean }, first: number, last: number, count: number) {
  if (!time) return ticks(first, last, count);
  return Array.from({ length: count }, (_, at) => first + ((last - first) * at) / (count - 1));
}

function path(points: Point[], px: (x: number) => number, py: (y: number) => number): string {
  return `M${points.map(({ x, y }) => `${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join('L')}`;
}

function extent(values: number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
