// The one connection of the page, and its statements.

import { connect } from 'nacredb';

let opening;

/** Opens the database on first use. A page opens it once: React runs effects twice in development. */
export function database() {
  opening ??= open().catch((error) => {
    opening = undefined;
    throw error;
  });
  return opening;
}

async function open() {
  const db = await connect('opfs://notes');
  await db.exec(
    'create table if not exists note (id bigint auto_increment primary key, body varchar(500))',
  );
  return db;
}

export async function notes() {
  const db = await database();
  return (await db.query('select id, body from note order by id')).rows;
}

export async function save(text) {
  const db = await database();
  await db.query('insert into note (body) values (?)', [text]);
}

/** Window functions are in the second part of the engine, which is fetched on first use. */
export async function longest() {
  const db = await database();
  const { rows } = await db.query(
    'select id, body, row_number() over (order by length(body) desc) as place from note',
  );
  return rows.find(({ place }) => Number(place) === 1)?.body ?? 'no note';
}
