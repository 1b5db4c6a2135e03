/**
 * The server: the newest version of each note, numbered as they arrive. `node ./server.mjs [FOLDER]
 * [PORT]` keeps them in a folder.
 *
 *     POST /push [{"id", "body", "is_deleted", "at", "client"}, …]   takes versions
 *     GET  /pull?since=N                    answers those with a number above N, and the last number
 */

import * as http from 'node:http';
import { connect } from 'nacredb';
import { isLater } from './sync.mjs';

const [folder = './server', port = '8090'] = process.argv.slice(2);
const db = await connect(folder);
await db.exec(`
  create table if not exists note (
    id text primary key, body text not null, is_deleted boolean not null,
    at bigint not null, client text not null, number bigint not null, key by_number (number)
  )`);

/** One after the other, so that numbers are given out in the order of their commits. */
let turn = Promise.resolve();

function push(rows) {
  turn = turn.catch(() => {}).then(() => take(rows));
  return turn;
}

async function take(rows) {
  await db.transaction(async (tx) => {
    const [{ last }] = (await tx.query('select max(number) as last from note')).rows;
    let number = last ?? 0n;
    for (const { id, body, is_deleted, client, at } of rows) {
      const { rows: own } = await tx.query('select at, client from note where id = ?', [id]);
      if (own.length === 0 || isLater({ at: BigInt(at), client }, own[0])) {
        const values = [id, body, is_deleted, BigInt(at), client, ++number];
        await tx.query('replace into note values (?, ?, ?, ?, ?, ?)', values);
      }
    }
  });
}

async function pull(since) {
  const sql = 'select * from note where number > ? order by number';
  const { rows } = await db.query(sql, [since]);
  const last = rows.at(-1)?.number ?? since;
  return {
    rows: rows.map(({ number: _, at, ...row }) => ({ ...row, at: `${at}` })),
    last: `${last}`,
  };
}

async function answer(request) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (request.method === 'POST' && pathname === '/push') {
    let text = '';
    for await (const chunk of request) {
      text += chunk;
    }
    return push(JSON.parse(text));
  }
  return pathname === '/pull' ? pull(BigInt(searchParams.get('since') ?? 0)) : null;
}

const server = http.createServer(async (request, response) => {
  try {
    const json = await answer(request);
    // For pages of other origins, which are clients too.
    const headers = { 'content-type': 'application/json', 'access-control-allow-origin': '*' };
    response.writeHead(json === null ? 404 : 200, headers).end(JSON.stringify(json ?? null));
  } catch (error) {
    response.writeHead(400).end(String(error));
  }
});

server.listen(Number(port), 'localhost', () => {
  console.log(`notes in ${folder} at http://localhost:${server.address().port}/`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
    void db.close();
  });
}
