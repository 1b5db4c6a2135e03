// Statistics of a statement: time, rows and bytes read, segments skipped.

import { storedBytes } from '../database/layers';
import type { Step } from '../database/run';
import { formatBytes, formatCount, formatMs, formatShare } from '../ui/format';

export function FigureList({ step }: { step: Step }) {
  if (!step.answer) return null;
  const { elapsedMs, rowsRead, bytesRead, segmentsRead, segmentsSkipped } = step.answer.figures;
  const segments = segmentsRead + segmentsSkipped;
  return (
    <dl class="figures numeric">
      <div data-figure="elapsedMs" data-value={elapsedMs}>
        <dt>in the engine</dt>
        <dd class="figure-value">{formatMs(elapsedMs)}</dd>
        <dd class="figure-note" data-figure="roundTripMs" data-value={step.roundTripMs}>
          {formatMs(step.roundTripMs)} including the round trip
        </dd>
      </div>
      <div data-figure="rowsRead" data-value={rowsRead}>
        <dt>{rowsRead === 1 ? 'row read' : 'rows read'}</dt>
        <dd class="figure-value">{formatCount(rowsRead)}</dd>
      </div>
      <div data-figure="bytesRead" data-value={bytesRead}>
        <dt>data read</dt>
        <dd class="figure-value">{formatBytes(bytesRead)}</dd>
        <dd class="figure-note">{formatShare(bytesRead, storedBytes.value)} of the stored data</dd>
      </div>
      <div data-figure="segmentsSkipped" data-value={segmentsSkipped}>
        <dt>segments skipped</dt>
        <dd class="figure-value" data-figure="segmentsRead" data-value={segmentsRead}>
          {segments === 0 ? '0' : `${formatCount(segmentsSkipped)} of ${formatCount(segments)}`}
        </dd>
      </div>
    </dl>
  );
}
