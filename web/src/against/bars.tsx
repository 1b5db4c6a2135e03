// The results as bars: the fastest system's bar has the full width, and the others' are as long as
// their speed relative to it.

import { formatCount, formatMs } from '../ui/format';
import { Icon } from '../ui/icons';
import { outcomes, state, timeOf, type Outcome } from './bench';
import { SYSTEMS, type System } from './systems';

const GROUPS = ['Start and load', 'One row at a time', 'All rows', 'Both at once'] as const;

/** The fastest time of an outcome, if any system has been measured. */
function fastest(outcome: Outcome): number | undefined {
  const times = SYSTEMS.flatMap(({ id }) => timeOf(outcome, id) ?? []);
  return times.length > 0 ? Math.min(...times) : undefined;
}

export function Results() {
  if (outcomes.value.length === 0) return null;
  return (
    <div class="outcomes">
      {GROUPS.map((group) => (
        <section key={group} aria-label={group}>
          <h2>{group}</h2>
          <div class="outcome-grid">
            {outcomes.value
              .filter(({ task }) => task.group === group)
              .map((outcome) => (
                <OutcomeView key={outcome.task.id} outcome={outcome} />
              ))}
          </div>
        </section>
      ))}
    </div>
  );
}

function OutcomeView({ outcome }: { outcome: Outcome }) {
  const { task } = outcome;
  const best = fastest(outcome);
  return (
    <article class="outcome" data-task={task.id}>
      <header>
        <h3>{task.title}</h3>
        <p>{task.why}</p>
      </header>
      <table class="bars numeric">
        <caption class="hidden">{task.title}</caption>
        <thead class="hidden">
          <tr>
            <th scope="col">System</th>
            <th scope="col">Relative speed</th>
            <th scope="col">Measured</th>
          </tr>
        </thead>
        <tbody>
          {SYSTEMS.map((system) => (
            <Bar key={system.id} system={system} outcome={outcome} best={best} />
          ))}
        </tbody>
      </table>
      <Equality outcome={outcome} />
    </article>
  );
}

function Bar({
  system,
  outcome,
  best,
}: {
  system: System;
  outcome: Outcome;
  best: number | undefined;
}) {
  const ms = timeOf(outcome, system.id);
  const failure = outcome.cells[system.id]?.failure;
  const share = ms !== undefined && best !== undefined ? best / ms : 0;
  return (
    <tr class={share === 1 ? 'best' : undefined} data-system={system.id} data-ms={ms}>
      <th scope="row">{system.name}</th>
      <td>
        <span
          class="bar-line"
          style={{ '--share': share, '--hue': `var(--${system.hue})` }}
          aria-hidden="true"
        />
        <span class="hidden">
          {ms === undefined ? '' : `${Math.round(100 * share)} % of the fastest`}
        </span>
      </td>
      <td title={failure}>
        {failure ? 'failed' : ms === undefined ? '' : measured(outcome, ms)}
        {share > 0 && share < 0.995 && <small>{factor(1 / share)}</small>}
      </td>
    </tr>
  );
}

/** How much slower than the fastest. */
const factor = (times: number): string =>
  `${times >= 10 ? formatCount(Math.round(times)) : times.toFixed(times < 2 ? 2 : 1)}×`;

function measured({ task }: Outcome, ms: number): string {
  if (task.unit === 'time') return formatMs(ms / task.count);
  const rate = (1000 * task.count) / ms;
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(rate)) - 2);
  return `${formatCount(Math.round(rate / digits) * digits)} ${task.unit}`;
}

/** Whether all systems answered the same. */
function Equality({ outcome }: { outcome: Outcome }) {
  if (outcome.different === undefined) return null;
  const names = SYSTEMS.filter(({ id }) => outcome.different!.includes(id)).map(({ name }) => name);
  return names.length === 0 ? (
    <p class="equal">
      <Icon name="check" />
      equal results
    </p>
  ) : (
    <p class="equal differs">
      <Icon name="warn" />
      {names.join(' and ')} {names.length === 1 ? 'has' : 'have'} other results
    </p>
  );
}

/** Over all tasks: the geometric mean of each system's time relative to the fastest. */
export function Overall() {
  if (state.value !== 'done') return null;
  const complete = outcomes.value.filter((outcome) =>
    SYSTEMS.every(({ id }) => timeOf(outcome, id) !== undefined),
  );
  if (complete.length === 0) return null;
  const rows = SYSTEMS.map((system) => {
    const ratios = complete.map((outcome) => timeOf(outcome, system.id)! / fastest(outcome)!);
    const logarithms = ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0);
    return {
      system,
      mean: Math.exp(logarithms / ratios.length),
      worst: Math.max(...ratios),
      wins: ratios.filter((ratio) => ratio === 1).length,
    };
  });
  return (
    <section class="overall" aria-labelledby="overall">
      <h2 id="overall">All {complete.length} tasks</h2>
      <table class="numeric">
        <thead>
          <tr>
            <th scope="col">System</th>
            <th scope="col">Mean time over the fastest</th>
            <th scope="col">Worst task</th>
            <th scope="col">Fastest in</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ system, mean, worst, wins }) => (
            <tr key={system.id} data-system={system.id}>
              <th scope="row">
                <i style={{ '--hue': `var(--${system.hue})` }} />
                {system.name}
              </th>
              <td>{factor(mean)}</td>
              <td>{factor(worst)}</td>
              <td>
                {wins} {wins === 1 ? 'task' : 'tasks'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
