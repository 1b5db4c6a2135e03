/**
 * A replica of a database that a native program writes: this Worker reads, near its users, the bucket to which
 * the program uploads what it commits.
 *
 *   GET /stations            the newest measurement of each station
 *   GET /stations/NAME       the last day of a station, by hour
 *
 * Each answer has the position that it shows in the header `x-nacre-position`, and how long ago that was
 * uploaded in `age`. A request with that header waits until the replica has the position, so that a
 * client that has written something, or has seen it, reads it here as well.
 */

import { connect } from 'nacredb';

const POSITION = 'x-nacre-position';
/** How long a request waits for the position it names. */
const PATIENCE_MS = 5_000;

const NEWEST = `
  select station, at, degrees from measurement m
  where at = (select max(at) from measurement where station = m.station) order by station`;
const LAST_DAY = `
  select date_trunc('hour', at) as hour, min(degrees) as low, max(degrees) as high
  from measurement
  where station = ? and at > (select max(at) from measurement where station = ?) - interval 1 day
  group by hour order by hour`;

/** The bucket, by the names and secrets of the Worker's environment. */
const blobsOf = ({ BLOBS, ENDPOINT, REGION, ACCESS_KEY_ID, SECRET_ACCESS_KEY }) => ({
  url: BLOBS,
  endpoint: ENDPOINT,
  region: REGION,
  credentials: { accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET_ACCESS_KEY },
});

async function answer(env, position, sql, parameters) {
  const cache = await caches.open('weather');
  const types = { bigint: 'number', date: 'string' };
  const db = await connect({ blobs: blobsOf(env), readOnly: true, cache, types });
  try {
    if (position !== null) {
      await db.waitForPosition(Number(position), { timeoutMs: PATIENCE_MS });
    }
    const { rows } = await db.query(sql, parameters);
    const lag = await db.lag();
    const age = Math.max(0, Math.round((Date.now() - lag.uploadedAt.getTime()) / 1_000));
    return Response.json(rows, {
      headers: { [POSITION]: String(lag.position), age: String(age), 'cache-control': 'no-store' },
    });
  } finally {
    await db.close();
  }
}

/** Statuses of what can go wrong. */
const STATUS = { unavailable: 503, not_found: 404, type: 400 };

export default {
  async fetch(request, env) {
    const [, what, station] = new URL(request.url).pathname.split('/');
    if (what !== 'stations') {
      return Response.json({ error: 'not found' }, { status: 404 });
    }
    const position = request.headers.get(POSITION);
    try {
      return station === undefined
        ? await answer(env, position, NEWEST, [])
        : await answer(env, position, LAST_DAY, [station, station]);
    } catch (error) {
      return Response.json({ error: error.message }, { status: STATUS[error.kind] ?? 500 });
    }
  },
};
