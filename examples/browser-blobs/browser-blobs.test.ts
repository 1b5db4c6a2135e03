import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { startS3 } from '../../tools/s3.mjs';
import { cargoBinary, emptyFolder, run } from '../testing.js';

const URL_OF_BLOBS = 's3://bucket/weather';
const URL_OF_BRANCH = 's3://bucket/trial';
let server: ChildProcess;
let page: string;
let browser: Browser;
let s3: Awaited<ReturnType<typeof startS3>>;

beforeAll(async () => {
  server = spawn(process.execPath, [path.join(import.meta.dirname, 'server.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(server.stdout!, 'data')) as [Buffer];
  // Requests without the writer's key may read, and nothing else.
  s3 = await startS3({
    refuse: (method, key) => (method === 'GET' || key === 'writer' ? null : 'AccessDenied'),
  });
  page = line.toString().trim();
  browser = await chromium.launch(launchOptions());
});

afterAll(async () => {
  await browser?.close();
  server?.kill();
  await s3?.stop();
});

/** Runs the command with the writer's key. */
async function nacre(...args: string[]): Promise<string> {
  return await run(await cargoBinary('nacre'), args, {
    AWS_ENDPOINT: s3.endpoint,
    AWS_ALLOW_HTTP: 'true',
    AWS_ACCESS_KEY_ID: 'writer',
    AWS_SECRET_ACCESS_KEY: 'not-a-secret',
  });
}

/** Opens the page of a database. */
async function show(url: string): Promise<Page> {
  const shown = await browser.newPage();
  await shown.goto(`${page}?url=${url}&endpoint=${s3.endpoint}`);
  return shown;
}

test('the page shows what the command writes', async () => {
  const folder = path.join(emptyFolder(), 'weather');
  const write = (sql: string) => nacre('sql', folder, '--blobs', URL_OF_BLOBS, sql);
  await write(`create table measurement (
    station varchar(20), at timestamp, degrees double, primary key (station, at))`);
  await write("insert into measurement values ('reef', '2026-01-01 10:00', 17.5)");

  const shown = await show(URL_OF_BLOBS);
  await shown.getByText('reef: 1, at most 17.5').waitFor();
  await write(`insert into measurement values
    ('cape', '2026-01-01 10:10', 12.5), ('reef', '2026-01-01 10:10', 18.25)`);
  await shown.getByText('cape: 1, at most 12.5').waitFor();
  await shown.getByText('reef: 2, at most 18.3').waitFor();
  await shown.fill('[name=station]', 'reef');
  await shown.click('form button');
  await shown.getByText('reef: 18.25 degrees').waitFor();
  expect(s3.requests.filter((request) => request.startsWith('PUT'))).not.toEqual([]);
  await shown.close();
}, 120_000);

test('the page shows a branch, and its origin beside it', async () => {
  const folder = path.join(emptyFolder(), 'trial');
  await nacre('branch', URL_OF_BLOBS, URL_OF_BRANCH);
  const warmer = "update measurement set degrees = degrees + 100 where station = 'reef'";
  await nacre('sql', folder, '--blobs', URL_OF_BRANCH, warmer);
  const branch = await show(URL_OF_BRANCH);
  await branch.getByText('reef: 2, at most 118.3').waitFor();
  // What was not changed is read where the origin has it.
  await branch.getByText('cape: 1, at most 12.5').waitFor();
  const origin = await show(URL_OF_BLOBS);
  await origin.getByText('reef: 2, at most 18.3').waitFor();
  await Promise.all([branch.close(), origin.close()]);
}, 120_000);

test('the command reads the bucket alone, and restores it', async () => {
  const csv = ['--format', 'csv', 'select count(*), max(degrees) from measurement'];
  const client = [
    '--blob-endpoint',
    s3.endpoint,
    '--blob-region',
    'us-east-1',
    '--blob-style',
    'path',
  ];
  const tenant = ['--blob-header', 'x-tenant: blue'];
  expect(await nacre('sql', URL_OF_BLOBS, ...client, ...tenant, ...csv)).toMatch(/\n3,18\.25\n$/);
  const folder = path.join(emptyFolder(), 'restored');
  await nacre('restore', URL_OF_BLOBS, folder, ...client);
  expect(await nacre('sql', folder, ...csv)).toMatch(/\n3,18\.25\n$/);
  // Another machine writes, with limits and times of its own.
  const times = [
    '--blob-lag',
    '100ms',
    '--history',
    '1h',
    '--retention',
    '2h',
    '--unsent-limit',
    '1MB',
  ];
  const other = path.join(emptyFolder(), 'other');
  await nacre('sql', other, '--blobs', URL_OF_BLOBS, ...times, 'delete from measurement');
  expect(await nacre('sql', URL_OF_BLOBS, ...client, ...csv)).toMatch(/\n0,\n$/);
}, 120_000);
