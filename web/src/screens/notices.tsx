// The screens without a console: opening, in use by another tab, failed.

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
      <h1>The database is open in another tab</h1>
      <p>
        A tab with another version of this page has <code>opfs://demo</code> open. Close or reload
        that tab.
      </p>
      <button class="button primary" type="button" disabled={trying} onClick={() => void start()}>
        <Icon name="reset" />
        {trying ? 'Trying…' : 'Try again'}
      </button>
      <Bed />
    </main>
  );
}

export function Failed({ failure }: { failure: Failure }) {
  return (
    <main class="screen" data-screen="failed">
      <Mark size={44} />
      <h1>
        {opened.value.url ? 'The data could not be generated' : 'The database could not be opened'}
      </h1>
      <p>
        <code class="failure-kind">{failure.kind}</code> {failure.message}
      </p>
      {failure.hint && <p>{failure.hint}</p>}
      {/* A reload, because the failure may have stopped the engine. */}
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

/** Layers along the bottom of the window, as decoration. */
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
