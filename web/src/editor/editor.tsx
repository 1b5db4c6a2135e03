// The upper half of the desk: the editor and its buttons.

import { useEffect, useRef } from 'preact/hooks';

import { endTransaction, openTransaction, running, stop, stopping } from '../database/run';
import { opened } from '../database/session';
import { shareUrl } from '../queries/share';
import { CopyButton } from '../ui/copy';
import { Icon } from '../ui/icons';
import { explainEditor, mountEditor, profileEditor, runEditor, script } from './desk';

const RUN_KEY = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ ↵' : 'Ctrl ↵';

export function Editor() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => mountEditor(place.current!), []);
  const empty = script.value.trim() === '';

  return (
    <section class="editor" aria-label="Editor">
      <div class="editor-text" ref={place} />
      <div class="editor-bar">
        <button
          class="button primary"
          type="button"
          disabled={running.value || empty}
          onClick={() => void runEditor()}
        >
          <Icon name="run" />
          {running.value ? 'Running' : 'Run'}
          <kbd>{RUN_KEY}</kbd>
        </button>
        <button
          class="button"
          type="button"
          disabled={running.value || empty}
          onClick={() => void explainEditor()}
        >
          <Icon name="plan" />
          Explain
        </button>
        <button
          class="button"
          type="button"
          disabled={running.value || empty}
          onClick={() => void profileEditor()}
          title="Runs the first statement, writes included, and shows the time of each operator"
        >
          <Icon name="clock" />
          Profile
        </button>
        <CopyButton label="Copy link" icon="link" text={() => shareUrl(script.value)} />
        {running.value && <Stop />}
        {openTransaction.value && <OpenTransaction />}
      </div>
    </section>
  );
}

/**
 * Stops the running statement. Sorting in memory and a few other things do not give way: while one of
 * them goes on, a reload ends the page's worker, and the engine in it.
 */
function Stop() {
  const kept = opened.value.reason
    ? 'the database is in memory only, so its data is generated again'
    : 'committed data stays, and an open transaction is rolled back';
  const [label, title, onClick] = stopping.value
    ? ['Reload', `The statement does not give way yet. Reloads the page: ${kept}`, reload]
    : ['Stop', 'Cancels the statement: it has changed nothing then', stop];
  return (
    <button class="button outlined stop" type="button" onClick={onClick} title={title}>
      {label}
    </button>
  );
}

const reload = (): void => location.reload();

function OpenTransaction() {
  return (
    <p class="editor-transaction" role="status">
      <span>Transaction open</span>
      <button class="button outlined" type="button" onClick={() => void endTransaction('commit')}>
        Commit
      </button>
      <button class="button outlined" type="button" onClick={() => void endTransaction('rollback')}>
        Roll back
      </button>
    </p>
  );
}
