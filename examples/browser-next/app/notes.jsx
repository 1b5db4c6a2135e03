'use client';

import { useEffect, useState } from 'react';
import { longest, notes, save } from './database';

/** Notes that stay in this browser: a reload finds them again. */
export function Notes() {
  const [rows, setRows] = useState([]);
  const [status, setStatus] = useState('');

  /** Does something with the database, or says why not; the message also says what to do. */
  const run = (work) => work().catch((error) => setStatus(String(error)));
  const show = async () => {
    const found = await notes();
    setRows(found);
    setStatus(`${found.length} notes`);
  };

  // Effects run in the browser only; the server renders an empty list.
  useEffect(() => {
    run(show);
  }, []);

  const add = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get('text');
    event.target.reset();
    run(async () => {
      await save(text);
      await show();
    });
  };

  return (
    <>
      <form onSubmit={add}>
        <input name="text" aria-label="Note" required maxLength={500} />
        <button>Add</button>
        <button
          type="button"
          id="longest"
          onClick={() => run(async () => setStatus(`longest: ${await longest()}`))}
        >
          Longest
        </button>
      </form>
      <ol>
        {rows.map(({ id, body }) => (
          <li key={id}>{body}</li>
        ))}
      </ol>
      <output>{status}</output>
    </>
  );
}
