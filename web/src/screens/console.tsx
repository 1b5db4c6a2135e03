// The console: a bar with shelf, desk and storage view below it.

import { opened, persisted, loaded, reset } from '../database/session';
import { storedBytes } from '../database/layers';
import { running } from '../database/run';
import { scale, SCALES } from '../load/load';
import { Editor } from '../editor/editor';
import { DropZone, ImportButton } from '../files/drop';
import { Shelf } from '../queries/shelf';
import { Results } from '../results/results';
import { Strata } from '../strata/strata';
import { formatBytes, formatCount, formatMs } from '../ui/format';
import { Icon, Mark } from '../ui/icons';
import { ThemeButton } from '../ui/theme';

export function Console() {
  return (
    <div class="console">
      <Bar />
      <Notice />
      <main class="panes">
        <Shelf />
        <div class="desk">
          <Editor />
          <Results />
        </div>
        <Strata />
      </main>
      <DropZone />
    </div>
  );
}

function Bar() {
  const { url, reason } = opened.value;
  return (
    <header class="bar">
      <h1 class="bar-name">
        <Mark />
        Nacre
      </h1>
      <p class="bar-place">
        <code>{url}</code>
        <span class="numeric">
          {formatBytes(storedBytes.value)}{' '}
          {reason
            ? 'in memory'
            : persisted.value
              ? 'stored permanently in this browser'
              : 'stored in this browser'}
        </span>
      </p>
      <p class="bar-loaded numeric" role="status">
        {loaded.value
          ? `${formatCount(loaded.value.rows)} rows generated and stored in ${formatMs(loaded.value.ms)}`
          : 'opened with your earlier changes'}
      </p>
      <ImportButton />
      <a class="bar-link" href="./against.html">
        Against the others
      </a>
      <a class="bar-link" href="./docs/">
        Documentation
      </a>
      <ScaleChoice />
      <button
        class="button bare"
        type="button"
        disabled={running.value}
        onClick={askReset}
        aria-label="Reset the data"
        title="Reset the data"
      >
        <Icon name="reset" />
      </button>
      <ThemeButton />
    </header>
  );
}

function askReset(): void {
  if (confirm('Drop the eight tables, including all your changes, and generate the data again?'))
    void reset();
}

/** The scale of the data. Another one replaces it. */
function ScaleChoice() {
  return (
    <label class="bar-scale">
      <span>TPC-H</span>
      <select
        value={String(scale.value)}
        disabled={running.value}
        aria-label="TPC-H scale"
        onChange={({ currentTarget }) => {
          const wanted = SCALES.find((each) => String(each.scale) === currentTarget.value)!;
          currentTarget.value = String(scale.value);
          const question = `Generate ${formatCount(wanted.rows)} rows, about ${wanted.megabytes} MB? They replace the eight tables, including all your changes to them.`;
          if (confirm(question)) void reset(wanted.scale);
        }}
      >
        {SCALES.map((each) => (
          <option key={each.scale} value={String(each.scale)}>
            {each.scale}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A warning if the database is in memory only. */
function Notice() {
  const { reason } = opened.value;
  if (!reason) return null;
  return (
    <p class="notice" role="status">
      <Icon name="warn" />
      <span>
        <strong>In memory only.</strong> The database works, but a reload discards all changes,
        because {reason}.
      </span>
    </p>
  );
}
