/** The package in Deno: a folder, with the fewest permissions. */

import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { connect } from 'nacredb';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');
const DIST = path.join(ROOT, 'bindings/js/dist');
const DENO = path.join(ROOT, 'node_modules/.bin/deno');

let folder: string;

beforeAll(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-deno-')));
  fs.writeFileSync(
    path.join(folder, 'count.mjs'),
    `import { connect } from ${JSON.stringify(path.join(DIST, 'node.js'))};
    const [place, waits] = Deno.args;
    try {
      const db = await connect(place);
      await db.exec('create table if not exists run (id bigint auto_increment primary key, at text)');
      await db.query('insert into run (at) values (?)', ['deno']);
      const { rows } = await db.query('select count(*)::int as n from run');
      console.log(rows[0].n);
      if (waits === 'waits') {
        await new Promise((resolve) => setTimeout(resolve, 30_000));
      }
      await db.close();
    } catch ({ kind, message }) {
      console.log(kind + ': ' + message);
    }`,
  );
});

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const place = (name: string): string => path.join(folder, name);
/** A folder that is there: to create one, its parent must be readable as well. */
const made = (name: string): string => {
  fs.mkdirSync(place(name));
  return name;
};
const command = (allowed: string[], ...args: string[]): string[] => [
  'run',
  '--no-prompt',
  ...allowed,
  place('count.mjs'),
  ...args,
];

async function run(allowed: string[], name: string): Promise<string> {
  const { stdout } = await promisify(execFile)(DENO, command(allowed, place(name)));
  return stdout.trim();
}

const least = (name: string): string[] => [
  `--allow-read=${place(name)},${DIST}`,
  `--allow-write=${place(name)}`,
];

test('a folder keeps the database, and nothing else has to be allowed', async () => {
  expect(await run(least('kept'), made('kept'))).toBe('1');
  expect(await run(least('kept'), 'kept')).toBe('2');
  // Node opens the same folder, and Deno goes on after it.
  const db = await connect(place('kept'));
  expect((await db.query('select count(*)::int as n from run')).rows).toEqual([{ n: 2 }]);
  await db.query("insert into run (at) values ('node')");
  await db.close();
  expect(await run(least('kept'), 'kept')).toBe('4');
});

test('a permission that is missing is named', async () => {
  expect(await run([], 'closed')).toMatch(/^io: .*--allow-read/);
  expect(await run(['--allow-read'], 'closed')).toMatch(/^io: .*--allow-write/);
});

test('a folder is open in one process, and free when that is killed', async () => {
  const child = spawn(DENO, command(least('held'), place(made('held')), 'waits'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  expect(await run(least('held'), 'held')).toMatch(/^in_use: /);
  if (process.platform === 'linux') {
    await expect(connect(place('held'))).rejects.toMatchObject({ kind: 'in_use' });
  }
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  expect(await run(least('held'), 'held')).toBe('2');
});

test('a folder that Node has open is in use', async () => {
  const db = await connect(place('of-node'));
  expect(await run(least('of-node'), 'of-node')).toMatch(/^in_use: .*Node/);
  await db.close();
  expect(await run(least('of-node'), 'of-node')).toBe('1');
});
