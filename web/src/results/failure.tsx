// A failed statement: the kind of error, the message, and its position with the line it is on.

import type { Run, Step } from '../database/run';
import { plural } from '../ui/format';
import { Icon } from '../ui/icons';

export function FailureView({ step, run }: { step: Step; run: Run }) {
  const { kind, message, hint, line, column } = step.failure!;
  const source = line === undefined ? undefined : step.text.split('\n')[line - 1];
  return (
    <div class="failure" role="alert">
      <p class="failure-head">
        <Icon name="warn" />
        <code class="failure-kind">{kind}</code>
        {line !== undefined && (
          <span class="numeric">
            line {line}, column {column}
          </span>
        )}
      </p>
      <p class="failure-message">{message}</p>
      {source !== undefined && column !== undefined && (
        <pre class="failure-source">
          {source}
          {'\n'}
          {' '.repeat(column - 1)}
          <b>^</b>
        </pre>
      )}
      {hint && <p class="failure-hint">{hint}</p>}
      <p class="failure-after">{aftermath(run)}</p>
      {kind === 'closed' && (
        <button class="button outlined" type="button" onClick={() => location.reload()}>
          <Icon name="reset" />
          Reload the page
        </button>
      )}
    </div>
  );
}

function aftermath({ skipped, rolledBack }: Run): string {
  const left = skipped > 0 ? ` ${plural(skipped, 'statement')} after it did not run.` : '';
  return `${rolledBack ? 'The transaction was rolled back: nothing changed.' : 'This statement changed nothing.'}${left}`;
}
