// The lower half of the desk: the results of the last run, statement by statement.

import { run, running, selectedStep, type Run, type Step } from '../database/run';
import { CopyButton } from '../ui/copy';
import { formatMs, plural } from '../ui/format';
import { Icon } from '../ui/icons';
import { FailureView } from './failure';
import { FigureList } from './figures';
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
          {answer.rows.length > 0 && <ResultTable answer={answer} />}
        </>
      )}
    </>
  );
}

function headline({ answer }: Step): string {
  if (!answer) return '';
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
