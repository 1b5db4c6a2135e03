// The weather as a public bucket has it. The page has no credentials and no server of its own: the engine
// fetches the blocks that a query reads, and looks for what the writer has uploaded since.

import { connect } from 'nacredb';

const form = document.querySelector('form');
const list = document.querySelector('ul');
const status = document.querySelector('output');

// Where the bucket is: `?url=s3://bucket/weather&endpoint=http://localhost:9000`
const at = new URLSearchParams(location.search);
const url = at.get('url') ?? 's3://bucket/weather';
const endpoint = at.get('endpoint') ?? undefined;
const region = at.get('region') ?? undefined;

/** Says in the page what went wrong; the message also says what to do. */
const report = (error) => (status.textContent = String(error));

async function show(db, rows) {
  const { uploadedAt } = await db.lag();
  const lines = rows.map(({ station, n, warmest }) => `${station}: ${n}, at most ${warmest}`);
  list.replaceChildren(
    ...lines.map((line) => Object.assign(document.createElement('li'), { textContent: line })),
  );
  status.textContent = `as of ${uploadedAt.toLocaleTimeString()}`;
}

/** One row by its key: the page reads a few blocks for it, whatever the size of the table. */
async function newest(db, station) {
  const sql = 'select at, degrees from measurement where station = ? order by at desc limit 1';
  const { rows } = await db.query(sql, [station]);
  status.textContent =
    rows.length === 0 ? `no station ${station}` : `${station}: ${rows[0].degrees} degrees`;
}

try {
  const db = await connect(url, { blobs: { endpoint, region }, follow: 500 });
  form.onsubmit = (event) => {
    event.preventDefault();
    newest(db, new FormData(form).get('station')).catch(report);
  };
  const sql = `select station, count(*) as n, round(max(degrees), 1) as warmest
    from measurement group by station order by station`;
  // Called again whenever the writer has uploaded more.
  await db.live.query(sql, [], ({ rows }) => show(db, rows).catch(report));
} catch (error) {
  report(error);
}
