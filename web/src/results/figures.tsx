// What a statement cost: time, rows and bytes read, segments it could skip.

import { storedBytes } from '../database/layers';
import type { Step } from '../database/run';
import { formatBytes, formatCount, formatMs, formatShare } from '../ui/format';

export function FigureList({ step }: { step: Step }) {
  const figures = step.answer?.figures;
  if (!figures) return null;
  const { elapsedMs, rowsRead, bytesRead, segmentsRead, segmentsSkipped } = figures;
  const segments = segmentsRead + segmentsSkipped;
  return (
    <dl class="figures numeric">
      <Figure name="in the engine" value={formatMs(elapsedMs)} note={`${formatMs(step.roundTripMs)} with the way there and back`} />
      <Figure name={rowsRead === 1 ? 'row read' : 'rows read'} value={formatCount(rowsRead)} />
      <Figure name="read" value={formatBytes(bytesRead)} note={`${formatShare(bytesRead, storedBytes.value)} of what is stored`} />
      <Figure
        name={segments === 1 ? 'segment skipped' : 'segments skipped'}
        value={segments === 0 ? '0' : `${formatCount(segmentsSkipped)} of ${formatCount(segments)}`}
      />
    </dl>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="figure-value">{value}</dd>
      {note && <dd class="figure-note">{note}</dd>}
    </div>
  );
}
