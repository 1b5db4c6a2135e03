/**
 * The route of `examples/edge-next` in the edge runtime of Next.js, which reads from a bucket what the package
 * has written to it in Node.
 */

import { spawn } from 'node:child_process';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Failure, freePort, run } from './lib.mjs';
import { startS3 } from './s3.mjs';

/** What the route answers. */
const WEATHER = '[{"station":"reef","at":"2026-01-01 11:00:00","degrees":18.5}]';

/** Builds the example in a folder, starts it, and asks its route. */
export async function checkEdgeRoute(cwd) {
  const next = path.join(cwd, 'node_modules/.bin/next');
  const quiet = { NEXT_TELEMETRY_DISABLED: '1' };
  await run(next, ['build'], { cwd, quiet: true, env: quiet });
  const s3 = await startS3({
    refuse: (method, key) => (method === 'GET' || key === 'writer' ? null : 'AccessDenied'),
  });
  const url = 's3://bucket/weather';
  await writeWeather(cwd, { url, endpoint: s3.endpoint });
  const port = await freePort();
  const server = spawn(next, ['start', '--hostname', '127.0.0.1', '--port', String(port)], {
    cwd,
    env: { ...process.env, ...quiet, BLOBS: url, ENDPOINT: s3.endpoint },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await new Promise((resolve, reject) => {
      server.stdout.on('data', (text) => String(text).includes('Ready') && resolve());
      server.on('exit', (code) => reject(new Failure(`next start ended with ${code}`)));
    });
    const response = await fetch(`http://127.0.0.1:${port}/stations`);
    const body = await response.text();
    if (body !== WEATHER) {
      throw new Failure(`the route answered ${response.status} ${body}, not ${WEATHER}`);
    }
  } finally {
    server.removeAllListeners('exit');
    server.kill();
    await s3.stop();
  }
}

async function writeWeather(cwd, blobs) {
  const { connect } = await import(
    pathToFileURL(path.join(cwd, 'node_modules/nacredb/dist/node.js'))
  );
  const credentials = { accessKeyId: 'writer', secretAccessKey: 'not-a-secret' };
  const db = await connect('memory://', { blobs: { ...blobs, credentials } });
  await db.exec(`create table measurement (
    station varchar(20), at timestamp, degrees double, primary key (station, at))`);
  await db.exec(`insert into measurement values
    ('reef', '2026-01-01 10:00', 17.5), ('reef', '2026-01-01 11:00', 18.5)`);
  await db.close();
}
