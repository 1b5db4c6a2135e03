/** The command writes to a server in memory, which everybody may read; the Worker runs in Cloudflare's runtime. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';
import { cargoBinary, emptyFolder, run, startWorker } from '../testing.js';

const BLOBS = 's3://bucket/taxi';
const TRIPS = 20_000;

let s3: Awaited<ReturnType<typeof startS3>>;
let runtime: Miniflare;
let nacre: (...args: string[]) => Promise<string>;

beforeAll(async () => {
  s3 = await startS3({
    refuse: (method, key) => (method === 'GET' || key === 'writer' ? null : 'AccessDenied'),
  });
  runtime = await startWorker(path.join(import.meta.dirname, 'worker.mjs'), {
    bindings: { BLOBS, ENDPOINT: s3.endpoint, REGION: 'us-east-1' },
  });
  const command = await cargoBinary('nacre');
  const env = {
    AWS_ENDPOINT: s3.endpoint,
    AWS_ALLOW_HTTP: 'true',
    AWS_ACCESS_KEY_ID: 'writer',
    AWS_SECRET_ACCESS_KEY: 'not-a-secret',
  };
  const folder = emptyFolder();
  const [database, file] = [path.join(folder, 'taxi'), path.join(folder, 'trips.csv')];
  nacre = (...args) => run(command, args, env);
  const lines = Array.from({ length: TRIPS }, (_, n) => `${n},${n % 7},${n / 4},${n % 100}.50`);
  fs.writeFileSync(file, `id,zone,miles,fare\n${lines.join('\n')}\n`);
  const blobs = ['--blobs', BLOBS];
  await nacre(
    'sql',
    database,
    ...blobs,
    'create table trip (id bigint primary key, zone int, miles double, fare decimal(8, 2))',
  );
  await nacre('import', database, 'trip', file, ...blobs);
}, 300_000);

afterAll(async () => {
  await runtime?.dispose();
  await s3?.stop();
});

async function ask(sql: string, headers: Record<string, string> = {}) {
  const url = `http://localhost/?sql=${encodeURIComponent(sql)}`;
  const response = await runtime.dispatchFetch(url, { headers });
  const text = await response.text();
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    body: text === '' ? null : (JSON.parse(text) as unknown),
  };
}

test('SQL is answered without credentials', async () => {
  const { status, body } = await ask(
    'select zone, count(*) as n, sum(fare) as fares from trip where id < 700 group by zone order by zone limit 2',
  );
  expect([status, body]).toEqual([
    200,
    [
      { zone: 0, n: 100, fares: 5000 },
      { zone: 1, n: 100, fares: 5000 },
    ],
  ]);
  const tables = await runtime.dispatchFetch('http://localhost/tables');
  expect(await tables.json()).toContainEqual(
    expect.objectContaining({ table_name: 'trip', column_name: 'miles' }),
  );
});

test('an answer that the client has is not made again', async () => {
  const sql = 'select count(*) as n from trip';
  const { etag, body } = await ask(sql);
  expect(body).toEqual([{ n: TRIPS }]);
  expect(await ask(sql, { 'if-none-match': etag! })).toMatchObject({ status: 304, body: null });
  expect((await ask('select 1 as n', { 'if-none-match': etag! })).status).toBe(200);
});

test('nothing can be changed, and too much is refused', async () => {
  expect(await ask('delete from trip')).toMatchObject({
    status: 400,
    body: { kind: 'unsupported' },
  });
  expect(await ask('select * from nowhere')).toMatchObject({ status: 404 });
  expect(await ask('no query')).toMatchObject({ status: 400, body: { kind: 'syntax' } });
  expect(await ask('select * from trip')).toMatchObject({ status: 413 });
  const writes = s3.requests.filter((request) => /^(PUT|DELETE)/.test(request)).length;
  expect(await ask('select max(id) as id from trip')).toMatchObject({ body: [{ id: TRIPS - 1 }] });
  expect(s3.requests.filter((request) => /^(PUT|DELETE)/.test(request))).toHaveLength(writes);
});
