/**
 * An analytics endpoint over public data: clients send SQL, and this Worker answers it from a database in
 * a bucket that everybody may read. Nothing can be changed, since it is opened only to read.
 *
 *   GET  /?sql=select…        rows as JSON
 *   GET  /tables              the tables and their columns
 *
 * An answer is kept by browsers and caches for a minute. Its `etag` is the state of the data and the text of
 * the query, so that a client which has it already is answered without running anything.
 */

import { connect } from 'nacredb';

/** Rows of one answer. */
const MOST_ROWS = 1_000;
const TABLES = `
  select table_name, column_name, data_type from information_schema.columns
  where table_schema = 'main' order by table_name, ordinal_position`;

async function etagOf(position, sql) {
  const bytes = new TextEncoder().encode(`${position} ${sql}`);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return `"${btoa(String.fromCharCode(...hash.slice(0, 12)))}"`;
}

async function answer(env, sql, known) {
  const cache = await caches.open('analytics');
  const { BLOBS: url, ENDPOINT: endpoint, REGION: region } = env;
  const db = await connect({
    // Without credentials: the bucket is public.
    blobs: { url, endpoint, region },
    readOnly: true,
    cache,
    // One query at a time, and what an isolate can give.
    memoryBytes: 48 * 2 ** 20,
    types: { bigint: 'number', decimal: 'number', date: 'string' },
  });
  try {
    const { position } = await db.lag();
    const headers = { etag: await etagOf(position, sql), 'cache-control': 'public, max-age=60' };
    if (headers.etag === known) {
      return new Response(null, { status: 304, headers });
    }
    const rows = [];
    for await (const row of (await db.prepare(sql)).iterate()) {
      if (rows.length === MOST_ROWS) {
        return Response.json({ error: `more than ${MOST_ROWS} rows` }, { status: 413 });
      }
      rows.push(row);
    }
    return Response.json(rows, { headers });
  } finally {
    await db.close();
  }
}

/** Statuses of what can go wrong; anything else about a query is the client's to mend. */
const STATUS = { unavailable: 503, io: 502, corrupt: 500, limit: 413, not_found: 404 };

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const sql = pathname === '/tables' ? TABLES : searchParams.get('sql');
    if (request.method !== 'GET' || sql === null) {
      return Response.json({ error: 'GET /?sql=… or /tables' }, { status: 400 });
    }
    try {
      return await answer(env, sql, request.headers.get('if-none-match'));
    } catch (error) {
      const { kind, message, hint } = error;
      return Response.json({ error: message, kind, hint }, { status: STATUS[kind] ?? 400 });
    }
  },
};
