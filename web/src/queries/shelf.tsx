// The shelf beside the editor: ready-made statements and the history. On narrow screens it is one
// scrolling row.

import { useState } from 'preact/hooks';

import { running } from '../database/run';
import { openScript, script } from '../editor/desk';
import { formatCount } from '../ui/format';
import { GROUPS } from './catalog';
import { forget, history } from './history';

export function Shelf() {
  const [page, setPage] = useState<'ready' | 'history'>('ready');
  return (
    <nav class="shelf" aria-label="Statements to run">
      <div class="shelf-pages" role="group" aria-label="Shelf">
        <button type="button" aria-pressed={page === 'ready'} onClick={() => setPage('ready')}>
          Examples
        </button>
        <button type="button" aria-pressed={page === 'history'} onClick={() => setPage('history')}>
          History <span class="numeric">{formatCount(history.value.length)}</span>
        </button>
      </div>
      {page === 'ready' ? <Ready /> : <History />}
    </nav>
  );
}

function Ready() {
  return (
    <div class="shelf-body">
      {GROUPS.map((group) => (
        <section key={group.title} class="shelf-group">
          <h2>{group.title}</h2>
          <ul>
            {group.queries.map((query) => (
              <li key={query.id}>
                <button
                  class="card"
                  type="button"
                  data-query={query.id}
                  disabled={running.value}
                  aria-current={script.value === query.sql}
                  onClick={() => openScript(query.sql, true)}
                >
                  <strong>{query.title}</strong>
                  <span>{query.why}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function History() {
  if (history.value.length === 0) {
    return (
      <p class="shelf-empty">Statements you run are listed here. They stay in this browser.</p>
    );
  }
  return (
    <div class="shelf-body">
      <ul class="shelf-history">
        {history.value.map((entry) => (
          <li key={entry}>
            <button class="card" type="button" onClick={() => openScript(entry, false)}>
              <code>{entry.replace(/\s+/g, ' ')}</code>
            </button>
          </li>
        ))}
      </ul>
      <button class="button shelf-forget" type="button" onClick={forget}>
        Clear history
      </button>
    </div>
  );
}
