import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';
import { connect, type Database, type Transaction } from 'nacredb/node';
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

/** A server that has one version of a note, by another client. */
async function serverWith(at: bigint): Promise<{ url: string; close: () => void }> {
  const row = { id: '1', body: 'remote', is_deleted: false, at: `${at}`, client: 'phone' };
  const fixed = http.createServer((_, response) =>
    response.end(JSON.stringify({ rows: [row], last: '1' })),
  );
  fixed.listen(0, 'localhost');
  await once(fixed, 'listening');
  const { port } = fixed.address() as AddressInfo;
  return { url: `http://localhost:${port}/`, close: () => fixed.close() };
}

/** A database in which something happens after the first time that a version of a note is read. */
function interrupted(db: Database, interrupt: () => Promise<unknown>): Database {
  let pending: (() => Promise<unknown>) | null = interrupt;
  const reading = <T extends Database | Transaction>(queries: T): T =>
    new Proxy(queries, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (name === 'transaction') {
          return (work: (tx: Transaction) => Promise<unknown>) =>
            db.transaction((tx) => work(reading(tx)));
        }
        if (name === 'query') {
          return async (...args: [string, unknown[]]) => {
            const result = await target.query(...args);
            if (/from note where id/.test(args[0])) {
              const now = pending;
              pending = null;
              await now?.();
            }
            return result;
          };
        }
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return reading(db);
}

test.each([true, false])(
  'a note that is written while an older version is pulled stays (known before: %s)',
  async (isKnown) => {
    const old = BigInt(Date.now()) - 60_000n;
    const remote = await serverWith(old);
    const db = await connect(emptyFolder());
    try {
      // Another tab writes to the same database.
      const otherTab = await Notes.open(db, remote.url, 'laptop');
      if (isKnown) {
        await db.query("insert into note values ('1', 'first', false, ?, 'laptop')", [old - 1n]);
      }
      const pulling = interrupted(db, () => otherTab.write('1', 'local'));
      await (await Notes.open(pulling, remote.url, 'laptop')).pull();
      expect(await otherTab.list()).toEqual([{ id: '1', body: 'local' }]);
    } finally {
      await db.close();
      remote.close();
    }
  },
);

test.each([true, false])(
  'a note that is written while a later version is pulled is later still (known before: %s)',
  async (isKnown) => {
    const ahead = BigInt(Date.now()) + 60_000n;
    const remote = await serverWith(ahead);
    const db = await connect(emptyFolder());
    try {
      const otherTab = await Notes.open(db, remote.url, 'laptop');
      if (isKnown) {
        await otherTab.write('1', 'first');
      }
      const writing = interrupted(db, () => otherTab.pull());
      await (await Notes.open(writing, remote.url, 'laptop')).write('1', 'local');
      const { rows } = await db.query<{ body: string; at: bigint }>('select body, at from note');
      expect(rows).toEqual([{ body: 'local', at: ahead + 1n }]);
    } finally {
      await db.close();
      remote.close();
    }
  },
);
