// The button that starts the writer, and what it has done.

import { isWriting, startWriter, stopWriter, writing, WRITER_TABLE } from '../database/writer';
import { plural } from '../ui/format';
import { Icon } from '../ui/icons';

export function Writer() {
  const now = writing.value;
  const active = isWriting();
  return (
    <section class="writer" aria-label="Writer" data-state={active ? 'running' : 'stopped'}>
      <p class="numeric" role={now?.failure ? 'alert' : undefined}>
        {now?.failure ? (
          <>
            <code class="failure-kind">{now.failure.kind}</code> {now.failure.message}
          </>
        ) : now ? (
          <>
            <strong>{plural(Math.round(now.perSecond), 'commit')}/s</strong> into {WRITER_TABLE}
            <br />
            live query: {plural(now.rows, 'row')}, mean {now.mean.toFixed(3)}
          </>
        ) : (
          'Watch the layers while transactions are written.'
        )}
      </p>
      <button
        class="button outlined"
        type="button"
        onClick={() => (active ? void stopWriter() : startWriter())}
      >
        <Icon name={active ? 'stop' : 'run'} />
        {active ? 'Stop writing' : 'Start a writer'}
      </button>
    </section>
  );
}
