// What the database takes, above the layers.

import { commits, counters } from '../database/counters';
import { formatBytes, formatCount } from '../ui/format';

export function Counters() {
  const now = counters.value;
  if (!now) return null;
  const { fileBytes, rowstoreBytes, cacheBytes, cacheLimit, cacheHits, cacheMisses } = now;
  return (
    <dl class="counters numeric">
      <div data-counter="commits">
        <dt>commits</dt>
        <dd>{formatCount(commits.value)}</dd>
      </div>
      <div data-counter="files">
        <dt>files</dt>
        <dd>{fileBytes > 0 ? formatBytes(fileBytes) : 'none'}</dd>
      </div>
      <div data-counter="rowstore">
        <dt>rowstore</dt>
        <dd>{formatBytes(rowstoreBytes)}</dd>
      </div>
      <div data-counter="cache" title={`${formatBytes(cacheBytes)} of ${formatBytes(cacheLimit)}`}>
        <dt>block cache</dt>
        <dd>{formatBytes(cacheBytes)}</dd>
      </div>
      <div data-counter="hits" title={`${formatCount(cacheMisses)} blocks read from files`}>
        <dt>cache hits</dt>
        <dd>{formatCount(cacheHits)}</dd>
      </div>
    </dl>
  );
}
