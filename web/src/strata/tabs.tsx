// Which tab has the database open, and buttons for a second one and for the end of the first.

import { endLeader, leads, openTab, tookOverMs } from '../database/tabs';

export function Tabs() {
  if (leads.value === null) return null;
  return (
    <section class="writer tabs" aria-label="Tabs" data-leads={leads.value}>
      <p class="numeric" role="status">
        {leads.value ? (
          <>
            <strong>This tab</strong> has the database open
            {tookOverMs.value !== null && <>, {tookOverMs.value.toFixed(0)} ms after the other</>}.
          </>
        ) : (
          <>
            <strong>Another tab</strong> has the database open, and answers this one.
          </>
        )}
      </p>
      <button class="button outlined" type="button" onClick={leads.value ? openTab : endLeader}>
        {leads.value ? 'Open a second tab' : 'End that tab'}
      </button>
    </section>
  );
}
