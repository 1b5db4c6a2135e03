// Dropping a file on the window, the button that opens one, and the progress of an import.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import { plural } from '../ui/format';
import { Icon } from '../ui/icons';
import { dismissImport, importFile, importing } from './import';

const ACCEPTED = '.csv,.tsv,.txt,.tbl,.ndjson,.jsonl,.json,.arrow,.arrows,.feather,.ipc,.parquet';

/** Whether a file is being dragged over the window. */
const over = signal(false);

export function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        class="button outlined import-button"
        type="button"
        onClick={() => input.current!.click()}
        title="CSV, NDJSON, Arrow or Parquet; or drop a file anywhere on the page"
      >
        <Icon name="open" />
        Open a file
      </button>
      <input
        class="hidden"
        type="file"
        accept={ACCEPTED}
        ref={input}
        tabIndex={-1}
        aria-label="File to import"
        onChange={({ currentTarget }) => {
          const file = currentTarget.files?.[0];
          currentTarget.value = '';
          if (file) void importFile(file);
        }}
      />
    </>
  );
}

/** Takes files that are dropped anywhere on the window. */
export function DropZone() {
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      over.value = true;
    };
    const leave = (event: DragEvent) => {
      if (!event.relatedTarget) over.value = false;
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      over.value = false;
      const file = event.dataTransfer!.files[0];
      if (file) void importFile(file);
    };
    const listeners = { dragenter: enter, dragover: enter, dragleave: leave, drop } as const;
    for (const [name, listener] of Object.entries(listeners)) {
      window.addEventListener(name, listener as EventListener, { capture: true });
    }
    return () => {
      for (const [name, listener] of Object.entries(listeners)) {
        window.removeEventListener(name, listener as EventListener, { capture: true });
      }
    };
  }, []);
  return (
    <>
      {over.value && (
        <div class="drop" aria-hidden="true">
          <p>
            <Icon name="open" />
            Drop a CSV, NDJSON, Arrow or Parquet file to make a table of it
          </p>
        </div>
      )}
      <ImportState />
    </>
  );
}

function ImportState() {
  const now = importing.value;
  if (!now) return null;
  const { file, text, rows, fraction, failure } = now;
  return (
    <section
      class="import"
      aria-label="Import"
      role={failure ? 'alert' : undefined}
      data-state={failure ? 'failed' : 'running'}
    >
      {failure ? (
        <div>
          <p>
            <code class="failure-kind">{failure.kind}</code>{' '}
            {failure.line !== undefined && <span class="numeric">line {failure.line}</span>}
          </p>
          <p>
            <strong>{file}</strong>: {failure.message}. No table was made.
          </p>
        </div>
      ) : (
        <div
          role="progressbar"
          aria-label={`Importing ${file}`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(fraction * 100)}
        >
          <p class="numeric">
            <strong>{file}</strong> {text}
            {rows > 0 && `, ${plural(rows, 'row')}`}
          </p>
          <span class="import-line" style={{ '--share': fraction }} />
        </div>
      )}
      <button class="button outlined" type="button" onClick={dismissImport}>
        {failure ? 'Close' : 'Stop'}
      </button>
    </section>
  );
}
