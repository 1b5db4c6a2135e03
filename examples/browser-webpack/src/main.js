// Notes that stay in this browser: a reload finds them again.

import { connect } from 'nacredb';

const form = document.querySelector('form');
const list = document.querySelector('ol');
const status = document.querySelector('output');

async function show(db) {
  const { rows } = await db.query('select id, body from note order by id');
  list.replaceChildren(
    ...rows.map(({ body }) => Object.assign(document.createElement('li'), { textContent: body })),
  );
  status.textContent = `${rows.length} notes`;
}

/** The longest note. Window functions are in the second part of the engine, fetched on first use. */
async function longest(db) {
  const { rows } = await db.query(
    'select id, body, row_number() over (order by length(body) desc) as place from note',
  );
  const first = rows.find(({ place }) => Number(place) === 1);
  status.textContent = first === undefined ? 'no notes' : `longest: ${first.body}`;
}

/** Says in the page what went wrong; the message also says what to do. */
const report = (error) => (status.textContent = String(error));

try {
  const db = await connect('opfs://notes');
  await db.exec(
    'create table if not exists note (id bigint auto_increment primary key, body varchar(500))',
  );
  form.onsubmit = (event) => {
    event.preventDefault();
    const text = new FormData(form).get('text');
    form.reset();
    db.query('insert into note (body) values (?)', [text])
      .then(() => show(db))
      .catch(report);
  };
  document.querySelector('#longest').onclick = () => longest(db).catch(report);
  await show(db);
} catch (error) {
  report(error);
}
