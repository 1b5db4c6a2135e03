// Notes in one HTML file that opens from disk. Such a page has no private file system: the notes are
// in memory, and are saved to and opened from files that the user chooses.

import { connect } from 'nacredb';

const form = document.querySelector('form');
const list = document.querySelector('ol');
const status = document.querySelector('output');
const opened = document.querySelector('#open');
const read = 'select id, body from note order by id';
let db;

/** A part of the package that the page contains. */
function part(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(whole);
}

const compiled = async (id) => WebAssembly.compile(await part(id).arrayBuffer());
const parts = {
  // A worker from a file, or from a blob, is refused here; one from its own text is not.
  workerUrl: `data:text/javascript,${encodeURIComponent(await part('worker').text())}`,
  wasmModule: await compiled('first'),
  moreWasmModule: await compiled('more'),
};

async function show() {
  const { rows } = await db.query(read);
  list.replaceChildren(
    ...rows.map(({ body }) => Object.assign(document.createElement('li'), { textContent: body })),
  );
  status.textContent = `${rows.length} notes`;
}

/** Opens a database in memory: an empty one, or the one that a file has. */
async function open(file) {
  const next = await connect('memory://', { ...parts, import: file });
  await db?.close();
  db = next;
  await db.exec(
    'create table if not exists note (id bigint auto_increment primary key, body varchar(500))',
  );
  await show();
}

async function add(text) {
  await db.query('insert into note (body) values (?)', [text]);
  await show();
}

async function longest() {
  const { rows } = await db.query(
    'select id, body, row_number() over (order by length(body) desc) as place from note',
  );
  status.textContent = `longest: ${rows.find(({ place }) => Number(place) === 1)?.body}`;
}

async function save() {
  const url = URL.createObjectURL(await db.export());
  Object.assign(document.createElement('a'), { href: url, download: 'notes.tar' }).click();
  URL.revokeObjectURL(url);
}

/** Does something, or says in the page what went wrong; the message also says what to do. */
const run = (work) => work.catch((error) => (status.textContent = String(error)));

form.onsubmit = (event) => {
  event.preventDefault();
  run(add(new FormData(form).get('text')));
  form.reset();
};
document.querySelector('#longest').onclick = () => run(longest());
document.querySelector('#save').onclick = () => run(save());
opened.onchange = () => run(open(opened.files[0]));
run(open());
