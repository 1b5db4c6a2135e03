import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as path from 'node:path';
import { connect, type Database } from 'nacredb/node';
import { afterEach, expect, test } from 'vitest';
import { emptyFolder } from '../testing.js';
import { Notes } from './sync.mjs';

let server: ChildProcess | null = null;
const running: (() => Promise<void>)[] = [];

/** Starts the server as its README says, and answers its address. */
async function start(folder: string, port = '0'): Promise<string> {
  const script = path.join(import.meta.dirname, 'server.mjs');
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  server = spawn(process.execPath, [script, folder, port], { stdio: [...stdio] });
  const [line] = (await once(server.stdout!, 'data')) as [Buffer];
  return /http:\S+/.exec(line.toString())![0];
}

async function stop(): Promise<void> {
  const exit = once(server!, 'exit');
  server!.kill('SIGTERM');
  server = null;
  await exit;
}

/** A client that exchanges changes until it is stopped. */
async function client(
  name: string,
  url: string,
  folder: string,
): Promise<{ notes: Notes; db: Database; end: () => Promise<void> }> {
  const db = await connect(folder);
  const notes = await Notes.open(db, url, name);
  const controller = new AbortController();
  const run = notes.run({ signal: controller.signal, everyMs: 30 });
  const end = async (): Promise<void> => {
    controller.abort();
    await run;
    await db.close();
  };
  running.push(end);
  return { notes, db, end };
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((end) => end()));
  if (server !== null) {
    await stop();
  }
});

/** Waits until a client has these bodies of notes, in their order. */
async function has({ notes }: { notes: Notes }, bodies: string[]): Promise<void> {
  const read = async () => (await notes.list()).map(({ body }) => body);
  await expect.poll(read, { timeout: 20_000, interval: 30 }).toEqual(bodies);
}

test('two clients see each other, and the later of two versions counts', async () => {
  const url = await start(emptyFolder());
  const laptop = await client('laptop', url, emptyFolder());
  const phone = await client('phone', url, emptyFolder());
  await laptop.notes.write('1', 'buy shells');
  await phone.notes.write('2', 'polish pearls');
  await Promise.all([laptop, phone].map((each) => has(each, ['buy shells', 'polish pearls'])));
  await phone.notes.write('1', 'buy two shells');
  await has(laptop, ['buy two shells', 'polish pearls']);
  await laptop.notes.delete('2');
  await has(phone, ['buy two shells']);
  // By any statement, not only by those of `Notes`.
  await phone.db.query(
    "update note set body = 'none', at = at + 1, client = 'phone' where id = '1'",
  );
  await has(laptop, ['none']);
});

test('what happens without a server, and without a client, is exchanged later', async () => {
  const [kept, folder] = [emptyFolder(), emptyFolder()];
  const url = await start(kept);
  const laptop = await client('laptop', url, emptyFolder());
  const phone = await client('phone', url, folder);
  await laptop.notes.write('1', 'one');
  await has(phone, ['one']);
  await stop();
  await laptop.notes.write('2', 'two');
  await phone.notes.delete('1');
  await running.pop()!();
  const before = await connect(folder);
  const offline = await Notes.open(before, url, 'phone');
  await offline.write('3', 'three');
  await before.close();
  await start(kept, new URL(url).port);
  const again = await client('phone', url, folder);
  await Promise.all([laptop, again].map((each) => has(each, ['two', 'three'])));
});
