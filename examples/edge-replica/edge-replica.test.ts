/** The command writes to a server in memory, and the Worker reads it in Cloudflare's runtime. */

import * as path from 'node:path';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';
import { cargoBinary, emptyFolder, run, startWorker } from '../testing.js';

const BLOBS = 's3://bucket/weather';
const SECRET = 'not-a-secret';
const POSITION = 'x-nacre-position';

let s3: Awaited<ReturnType<typeof startS3>>;
let runtime: Miniflare;
let write: (sql: string) => Promise<string>;

beforeAll(async () => {
  s3 = await startS3({
    refuse: (method, key) =>
      key === 'writer' || (method === 'GET' && key === 'reader') ? null : 'AccessDenied',
  });
  runtime = await startWorker(path.join(import.meta.dirname, 'worker.mjs'), {
    bindings: {
      BLOBS,
      ENDPOINT: s3.endpoint,
      REGION: 'us-east-1',
      ACCESS_KEY_ID: 'reader',
      SECRET_ACCESS_KEY: SECRET,
    },
  });
  const nacre = await cargoBinary('nacre');
  const folder = path.join(emptyFolder(), 'weather');
  const env = {
    AWS_ENDPOINT: s3.endpoint,
    AWS_ALLOW_HTTP: 'true',
    AWS_ACCESS_KEY_ID: 'writer',
    AWS_SECRET_ACCESS_KEY: SECRET,
  };
  write = (sql) => run(nacre, ['sql', folder, '--blobs', BLOBS, sql], env);
}, 300_000);

afterAll(async () => {
  await runtime?.dispose();
  await s3?.stop();
});

async function get(at: string, headers: Record<string, string> = {}) {
  const response = await runtime.dispatchFetch(`http://localhost/${at}`, { headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

test('the Worker answers what the command has written', async () => {
  expect((await get('stations')).status).toBe(404);
  await write(`create table measurement (
    station varchar(20), at timestamp, degrees double, primary key (station, at))`);
  await write(`insert into measurement values
    ('reef', '2026-01-01 10:00', 17.5), ('reef', '2026-01-01 10:30', 18.25),
    ('reef', '2026-01-01 11:00', 18), ('cape', '2026-01-01 10:10', 12.5)`);
  const newest = await get('stations');
  expect(newest.body).toEqual([
    { station: 'cape', at: '2026-01-01 10:10:00', degrees: 12.5 },
    { station: 'reef', at: '2026-01-01 11:00:00', degrees: 18 },
  ]);
  expect(Number(newest.headers.get('age'))).toBeLessThan(60);
  expect((await get('stations/reef')).body).toEqual([
    { hour: '2026-01-01 10:00:00', low: 17.5, high: 18.25 },
    { hour: '2026-01-01 11:00:00', low: 18, high: 18 },
  ]);
  expect((await get('measurements')).status).toBe(404);
});

test('a request that names a position has it, or is told that it is not there', async () => {
  const before = Number((await get('stations')).headers.get(POSITION));
  await write("insert into measurement values ('cape', '2026-01-01 12:00', 13)");
  const seen = await get('stations', { [POSITION]: String(before + 1) });
  expect(Number(seen.headers.get(POSITION))).toBeGreaterThan(before);
  expect(seen.body).toContainEqual({ station: 'cape', at: '2026-01-01 12:00:00', degrees: 13 });
  const never = await get('stations', { [POSITION]: String(2 ** 40) });
  expect([never.status, never.body]).toEqual([503, { error: expect.stringContaining('position') }]);
  expect((await get('stations', { [POSITION]: 'soon' })).status).toBe(400);
}, 60_000);
