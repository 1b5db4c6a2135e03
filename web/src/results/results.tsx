// The lower half of the desk: the results of the last run, statement by statement.

import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';

import { run, running, selectedStep, type Run, type Step } from '../database/run';
import type { StatementResult } from '../database/types';
import { CopyButton } from '../ui/copy';
import { formatMs, plural } from '../ui/format';
import { Icon } from '../ui/icons';
import { chartOf, measures } from './chart';
import { ChartView } from './chart-view';
import { FailureView } from './failure';
import { FigureList } from './figures';
import { isProfile } from './plan';
import { PlanView } from './plan-view';
import { ResultTable } from './table';
import { toCsv } from './value';

export function Results() {
  const current = run.value;
  const step = current?.steps[selectedStep.value];
  return (
    <section
      class="results"
      aria-label="Result"
      aria-busy={running.value}
      data-run={current?.number ?? 0}
    >
      {!current || !step ? <Nothing /> : <RunView run={current} step={step} />}
    </section>
  );
}

function Nothing() {
  return (
    <div class="results-nothing">
      <p>Run the statement above, or choose one of the examples.</p>
      <p>Each result shows what it cost, and the storage view shows what it changed.</p>
    </div>
  );
}

function RunView({ run, step }: { run: Run; step: Step }) {
  const { answer, failure } = step;
  return (
    <>
      {run.steps.length > 1 && <Steps steps={run.steps} />}
      {failure && <FailureView step={step} run={run} />}
      {answer && (
        <>
          <header class="results-head">
            <h2 aria-live="polite">{headline(step)}</h2>
            {answer.rows.length > 0 && <Actions step={step} />}
            <FigureList step={step} />
          </header>
          {answer.rows.length > 0 && <Rows step={step} />}
        </>
      )}
    </>
  );
}

/** How a result can be shown besides as a table. */
function drawing(answer: StatementResult): 'Plan' | 'Chart' | undefined {
  if (isProfile(answer)) return 'Plan';
  return measures(answer).some((measure) => chartOf(answer, measure)) ? 'Chart' : undefined;
}

/** Whether plans and charts are drawn, as last chosen. */
const drawn = { Plan: signal(true), Chart: signal(false) };

function Rows({ step }: { step: Step }) {
  const answer = step.answer!;
  const kind = useMemo(() => drawing(answer), [answer]);
  if (kind === undefined || !drawn[kind].value) return <ResultTable answer={answer} />;
  return kind === 'Plan' ? <PlanView answer={answer} /> : <ChartView answer={answer} />;
}

function ViewSwitch({ answer }: { answer: StatementResult }) {
  const kind = useMemo(() => drawing(answer), [answer]);
  if (kind === undefined) return null;
  const choice = (label: string, value: boolean) => (
    <label>
      <input
        type="radio"
        name="view"
        checked={drawn[kind].value === value}
        onChange={() => (drawn[kind].value = value)}
      />
      <span>{label}</span>
    </label>
  );
  return (
    <fieldset class="choice" data-view={kind.toLowerCase()}>
      <legend class="hidden">View</legend>
      {choice('Table', false)}
      {choice(kind, true)}
    </fieldset>
  );
}

function headline({ answer }: Step): string {
  if (!answer) return '';
  if (isProfile(answer)) return plural(answer.rows.length, 'operator');
  if (answer.columns.length > 0) return plural(answer.rows.length, 'row');
  return answer.rowsAffected > 0 ? `${plural(answer.rowsAffected, 'row')} changed` : 'Done';
}

function Actions({ step }: { step: Step }) {
  const answer = step.answer!;
  const download = () => {
    const address = URL.createObjectURL(new Blob([toCsv(answer)], { type: 'text/csv' }));
    Object.assign(document.createElement('a'), { href: address, download: 'nacre.csv' }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <div class="results-actions">
      <ViewSwitch answer={answer} />
      <CopyButton label="Copy CSV" icon="copy" text={() => toCsv(answer)} />
      <button
        class="button bare"
        type="button"
        onClick={download}
        aria-label="Download CSV"
        title="Download CSV"
      >
        <Icon name="download" />
      </button>
    </div>
  );
}

/** The statements of a script as a row of toggles, without the semantics of tabs. */
function Steps({ steps }: { steps: Step[] }) {
  return (
    <ol class="steps" aria-label="Statements of this run">
      {steps.map((step, index) => (
        <li key={index}>
          <button
            type="button"
            class={step.failure ? 'step failed' : 'step'}
            aria-pressed={index === selectedStep.value}
            onClick={() => (selectedStep.value = index)}
          >
            <code>{shorten(step.text)}</code>
            <span class="numeric">
              {step.failure ? step.failure.kind : formatMs(step.answer!.figures.elapsedMs)}
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 36 ? `${line.slice(0, 34).trimEnd()} …` : line;
}
