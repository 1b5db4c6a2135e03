/** The package in Deno: a folder, or a bucket, with the fewest permissions. */

import { execFile, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { connect } from 'nacredb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startS3 } from '../../tools/s3.mjs';

const ROOT = path.resolve(import.meta.dirname, '../..');
const DIST = path.join(ROOT, 'bindings/js/dist');
const DENO = path.join(ROOT, 'node_modules/.bin/deno');

let folder: string;

beforeAll(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-deno-')));
  fs.writeFileSync(
    path.join(folder, 'count.mjs'),
    `import { connect } from ${JSON.stringify(path.join(DIST, 'node.js'))};
    const [place, waits, endpoint] = Deno.args;
    const credentials = { accessKeyId: 'writer', secretAccessKey: 'not-a-secret' };
    const blobs = { url: 's3://bucket/deno', endpoint, credentials, retryForMs: 100 };
    const options = endpoint === undefined ? {} : { blobs, blobPatience: 200 };
    try {
      const db = await connect(place, options);
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

async function print(allowed: string[], ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(DENO, command(allowed, ...args));
  return stdout.trim();
}

const run = (allowed: string[], name: string): Promise<string> => print(allowed, place(name));

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

test('where there is no disk, a bucket keeps the database', async () => {
  const s3 = await startS3();
  try {
    const { host } = new URL(s3.endpoint);
    const runs = (...allowed: string[]): Promise<string> =>
      print([`--allow-read=${DIST}`, ...allowed], 'memory://', '', s3.endpoint);
    expect(await runs(`--allow-net=${host}`)).toBe('1');
    expect(await runs(`--allow-net=${host}`)).toBe('2');
    expect(await runs()).toMatch(/--allow-net/);
    const { objects } = s3;
    expect([...objects.keys()].some((key) => key.startsWith('bucket/deno/'))).toBe(true);
  } finally {
    await s3.stop();
  }
});

test('the package is found by its name, with its types', async () => {
  const project = place('typed');
  const modules = path.join(project, 'node_modules');
  const copies = {
    'nacredb/package.json': 'bindings/js/package.json',
    'nacredb/dist': 'bindings/js/dist',
    '@types/node': 'node_modules/@types/node',
    'undici-types': 'node_modules/undici-types',
  };
  for (const [name, from] of Object.entries(copies)) {
    fs.cpSync(path.join(ROOT, from), path.join(modules, name), { recursive: true });
  }
  const dependencies = { nacredb: '*', '@types/node': '*' };
  fs.writeFileSync(path.join(project, 'package.json'), JSON.stringify({ dependencies }));
  const check = (type: string) => {
    const script = path.join(project, 'main.ts');
    fs.writeFileSync(
      script,
      `import { connect, sql } from 'nacredb';
      const db = await connect('memory://');
      const { rows } = await db.query(sql\`select \${1}::int as one\`);
      const name: ${type} = sql.identifier('a').text;
      console.log(JSON.stringify(rows), name);
      await db.close();`,
    );
    const options = ['--check', '--no-prompt', '--node-modules-dir=manual', '--allow-read'];
    return promisify(execFile)(DENO, ['run', ...options, script], { cwd: project });
  };
  expect((await check('string')).stdout).toBe('[{"one":1}] "a"\n');
  await expect(check('number')).rejects.toMatchObject({
    stderr: expect.stringContaining('TS2322'),
  });
}, 30_000);
