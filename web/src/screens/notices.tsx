// Screens for when there is no console to show: opening, held by another tab, failed.

import type { Failure } from '../database/types';
import { opened, start } from '../database/session';
import { outline, type Wave } from '../strata/geometry';
import { Icon, Mark } from '../ui/icons';

export function Opening() {
  return (
    <main class="screen opening" aria-busy="true">
      <Mark size={44} />
      <p role="status">Opening the database</p>
    </main>
  );
}

export function InUse({ trying }: { trying: boolean }) {
  return (
    <main class="screen" data-screen="in_use">
      <Mark size={44} />
      <h1>Another tab has this database</h1>
      <p>
        One tab at a time holds <code>opfs://demo</code>. Close the other tab, or go on there;
        nothing is lost either way.
      </p>
      <button class="button primary" type="button" disabled={trying} onClick={() => void start()}>
        <Icon name="reset" />
        {trying ? 'Trying' : 'Try again'}
      </button>
      <Bed />
    </main>
  );
}

export function Failed({ failure }: { failure: Failure }) {
  return (
    <main class="screen" data-screen="failed">
      <Mark size={44} />
      <h1>{opened.value.url ? 'The data could not be made' : 'The database did not open'}</h1>
      <p>
        <code class="failure-kind">{failure.kind}</code> {failure.message}
      </p>
      {failure.hint && <p>{failure.hint}</p>}
      {/* From the beginning: what failed may have left an engine that cannot go on. */}
      <button class="button primary" type="button" onClick={() => location.reload()}>
        <Icon name="reset" />
        Try again
      </button>
      <Bed />
    </main>
  );
}

const BED: Wave = { width: 1200, amplitude: 9, seed: 0.7 };
const BED_LAYERS = ['rose', 'apricot', 'mint', 'sky', 'lilac', 'sky', 'mint'];

/** Layers along the foot of the window: the database is there, only not for us. */
function Bed() {
  return (
    <svg class="bed" viewBox="0 14 1200 140" preserveAspectRatio="none" aria-hidden="true">
      {BED_LAYERS.map((hue, index) => {
        const top = 28 + index * (8 + index * 1.6);
        const end = index === BED_LAYERS.length - 1 ? 190 : top + 6 + index * 3;
        return <path key={index} d={outline(BED, top, end)} fill={`var(--${hue})`} />;
      })}
    </svg>
  );
}
