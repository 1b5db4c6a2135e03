// The page "against the others": what is compared, the controls, and the bars.

import { useSignal } from '@preact/signals';

import { formatBytes, formatCount } from '../ui/format';
import { Icon, Mark } from '../ui/icons';
import { ThemeButton } from '../ui/theme';
import { Overall, Results } from './bars';
import { codeBytes, doing, failure, opened, ROUNDS, rowCount, start, state, stop } from './bench';
import { SYSTEMS } from './systems';

const SCALES = [
  { scale: 0.01, rows: 86_805, about: 'about a minute' },
  { scale: 0.1, rows: 866_602, about: 'several minutes, and about 2 GB of memory' },
];

export function Against() {
  return (
    <div class="against">
      <header class="bar">
        <p class="bar-name">
          <Mark />
          Nacre
        </p>
        <nav class="bar-links" aria-label="Pages">
          <a href="./">Console</a>
          <a href="./against.html" aria-current="page">
            Against the others
          </a>
        </nav>
        <ThemeButton />
      </header>
      <main class="against-page">
        <header class="against-head">
          <h1>Four databases, your browser</h1>
          <p>
            Nacre, SQLite, DuckDB-Wasm and PGlite get the same rows and the same SQL, on your
            machine, now. They take turns at every task, and their results are compared.
          </p>
          <Controls />
        </header>
        <Overall />
        <Results />
        <Settings />
      </main>
    </div>
  );
}

function Controls() {
  const scale = useSignal(SCALES[0]!.scale);
  const running = state.value === 'running';
  const chosen = SCALES.find((each) => each.scale === scale.value)!;
  return (
    <form
      class="against-controls"
      onSubmit={(event) => {
        event.preventDefault();
        if (running) stop();
        else void start(scale.value);
      }}
    >
      <fieldset class="choice" disabled={running}>
        <legend>TPC-H scale</legend>
        {SCALES.map((each) => (
          <label key={each.scale}>
            <input
              type="radio"
              name="scale"
              checked={each.scale === scale.value}
              onChange={() => (scale.value = each.scale)}
            />
            <span>
              {each.scale} <small class="numeric">{formatCount(each.rows)} rows</small>
            </span>
          </label>
        ))}
      </fieldset>
      <button class={running ? 'button outlined' : 'button primary'} type="submit">
        <Icon name={running ? 'stop' : 'run'} />
        {running ? 'Stop' : state.value === 'new' ? 'Start' : 'Start again'}
      </button>
      <div class="against-state" data-state={state.value}>
        {running ? (
          <Doing />
        ) : (
          <p role="status">
            {state.value === 'done'
              ? `Done. ${formatCount(rowCount.value)} rows in each system, ${ROUNDS} rounds.`
              : state.value === 'stopped'
                ? failure.value || 'Stopped.'
                : `Takes ${chosen.about}. Loads about 60 MB of code, most of it DuckDB's and PGlite's.`}
          </p>
        )}
      </div>
    </form>
  );
}

function Doing() {
  const { text, fraction } = doing.value;
  return (
    <div
      class="against-progress"
      role="progressbar"
      aria-label="Comparison"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(fraction * 100)}
      aria-valuetext={text}
    >
      <span style={{ '--share': fraction }} />
      <p>{text}</p>
    </div>
  );
}

function Settings() {
  return (
    <section class="against-settings" aria-labelledby="settings">
      <h2 id="settings">How it is measured</h2>
      <dl>
        {SYSTEMS.map((system) => {
          const report = opened.value[system.id];
          return (
            <div key={system.id} data-system={system.id}>
              <dt>
                <i style={{ '--hue': `var(--${system.hue})` }} />
                {system.name}
                {report && <small class="numeric"> {report.version}</small>}
              </dt>
              <dd>
                {system.settings}
                {report && (
                  <span class="numeric">
                    Data in {report.place}; {formatBytes(codeBytes.value[system.id] ?? 0)} of code,
                    uncompressed.
                  </span>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
      <ul>
        <li>
          Each system runs in a dedicated worker and is called in that worker's thread. Times are
          measured around its calls, without messages to the page. Start is measured in the page.
        </li>
        <li>
          Only one system works at a time. Each round starts with another one. A bar shows the
          median of {ROUNDS} rounds; start and load run once.
        </li>
        <li>
          A commit waits for whatever the system calls durable in a browser, with the settings
          above.
        </li>
        <li>
          All systems create the same tables with the same primary keys and no other indexes, and
          run the same text of SQL.
        </li>
        <li>
          Results are compared row by row. Numbers may differ by one part in a billion, because
          SQLite computes decimals as doubles.
        </li>
        <li>
          The rows are TPC-H's, from its generator in this page. This is not a TPC-H benchmark: it
          runs some of the queries, without the rules of the official one.
        </li>
        <li>
          Packages as they are published; nothing is patched. The databases are removed from this
          browser at the end.
        </li>
      </ul>
    </section>
  );
}
