import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { emptyFolder } from '../testing.js';

let server: ChildProcess | null = null;

/** Starts the server as its README says, and answers its address. */
async function start(folder: string): Promise<string> {
  const script = path.join(import.meta.dirname, 'server.mjs');
  server = spawn(process.execPath, [script, folder, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(server.stdout!, 'data')) as [Buffer];
  return /http:\S+/.exec(line.toString())![0];
}

/** Stops it, and answers its exit code. */
async function stop(): Promise<unknown> {
  const exit = once(server!, 'exit');
  server!.kill('SIGTERM');
  server = null;
  return (await exit)[0];
}

afterEach(async () => {
  if (server !== null) {
    await stop();
  }
});

test('links lead somewhere, their clicks are counted, and both survive a restart', async () => {
  const folder = emptyFolder();
  let url = await start(folder);
  const shorten = async (to: unknown) =>
    fetch(`${url}links`, { method: 'POST', body: JSON.stringify({ url: to }) });
  const codes: string[] = [];
  for (const name of ['shell', 'pearl']) {
    const response = await shorten(`https://example.com/${name}`);
    expect(response.status).toBe(201);
    codes.push(((await response.json()) as { code: string }).code);
  }
  expect((await shorten('javascript:alert(1)')).status).toBe(400);
  expect((await shorten(undefined)).status).toBe(400);
  expect((await fetch(`${url}nothing`)).status).toBe(404);

  const click = async (code: string, referer: string) =>
    fetch(`${url}${code}`, { redirect: 'manual', headers: { referer } });
  const followed = await click(codes[0]!, 'https://news.example/');
  expect(followed.status).toBe(302);
  expect(followed.headers.get('location')).toBe('https://example.com/shell');
  // All at once: their transactions conflict, and run again.
  const more = ['https://blog.example/', 'https://news.example/'];
  expect(
    (await Promise.all(more.map((from) => click(codes[0]!, from)))).map((r) => r.status),
  ).toEqual([302, 302]);
  await click(codes[1]!, 'https://blog.example/');
  expect(await stop()).toBe(0);

  url = await start(folder);
  const { top, hours } = (await (await fetch(`${url}stats`)).json()) as {
    top: object[];
    hours: { clicks: number }[];
  };
  expect(top).toEqual([
    {
      code: codes[0],
      url: 'https://example.com/shell',
      clicks: 3,
      percent: 75,
      referrer: 'https://news.example/',
    },
    {
      code: codes[1],
      url: 'https://example.com/pearl',
      clicks: 1,
      percent: 25,
      referrer: 'https://blog.example/',
    },
  ]);
  expect(hours.reduce((sum, hour) => sum + hour.clicks, 0)).toBe(4);
});
