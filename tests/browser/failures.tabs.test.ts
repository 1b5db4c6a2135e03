/**
 * What servers, policies, quotas and the system can do to a page that opens a database: each is a
 * typed error that says what to do, nothing is lost, and the same database opens again right after.
 */

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as nacredb from 'nacredb';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { launchOptions } from '../../tools/chromium.mjs';
import { VERSION } from '../../worker/shared/version.js';
import { FULL, fillUp } from './quota.js';
import { dist, serve, type Override, type Server } from './server.js';

declare global {
  interface Window {
    nacredb: typeof nacredb;
    db: nacredb.Database;
    waiting: Promise<string>;
  }
}

const HTML = { headers: { 'content-type': 'text/html' }, body: () => '<!doctype html><p>no' };
const CUT: Override = { body: (file) => file.subarray(0, file.length / 2) };
const CSP = 'content-security-policy';
/** Needs the second part of the engine. */
const NEEDS_MORE = 'select sum(id) over () from t';

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  server = await serve();
  browser = await chromium.launch(launchOptions());
});

afterAll(async () => {
  await browser.close();
  server.close();
});

/** A page in which the database was made, with one row, and closed. */
beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => window.nacredb !== undefined);
  await page.evaluate(async () => {
    const db = await window.nacredb.connect('opfs://failures');
    await db.exec('create table t (id bigint primary key); insert into t values (1)');
    await db.close();
  });
});

afterEach(async () => {
  server.overrides = {};
  await context.close();
});

async function reload(): Promise<void> {
  await page.reload();
  await page.waitForFunction(() => window.nacredb !== undefined);
}

interface Failed {
  kind: string;
  message: string;
}

/** Connects, inserts a row, and runs a statement: the error of the first that fails. */
function failure(sql?: string, options: object = {}): Promise<Failed | null> {
  return page.evaluate(
    async ({ sql, options }) => {
      try {
        window.db = await window.nacredb.connect('opfs://failures', options);
        if (sql !== undefined) {
          await window.db.query('insert into t values (2)');
          await window.db.query(sql);
        }
        return null;
      } catch (error) {
        const { kind, message } = error as nacredb.NacreError;
        return { kind, message };
      }
    },
    { sql, options },
  );
}

/** Opens the database again in the same page, adds a row, and answers all of them. */
function reopened(): Promise<number[]> {
  return page.evaluate(async () => {
    const db = await window.nacredb.connect('opfs://failures');
    await db.query('insert into t values (9)');
    const { rows } = await db.query<{ id: bigint }>('select id from t order by id');
    await db.close();
    return rows.map(({ id }) => Number(id));
  });
}

/** What a server does to files: the error, and what its message says. */
const LOADING: [string, Record<string, Override>, string, RegExp][] = [
  [
    'the engine is a page',
    { 'nacre_bg.wasm': HTML },
    'io',
    /served as text\/html.*not WebAssembly/,
  ],
  ['the engine is cut short', { 'nacre_bg.wasm': CUT }, 'io', /the file is cut short/],
  [
    'the connection breaks',
    { 'nacre_bg.wasm': { breakAfter: 100_000 } },
    'io',
    /nacre_bg.wasm, served as application\/wasm\) did not start/,
  ],
  [
    'the engine is missing',
    { 'nacre_bg.wasm': { status: 404 } },
    'io',
    /status 404; serve the file/,
  ],
  ['the worker is missing', { 'worker.js': { status: 404 } }, 'io', /missing \(set workerUrl\)/],
  ['the worker is a page', { 'worker.js': HTML }, 'io', /not served as JavaScript/],
  ['the worker fails', { 'worker.js': { body: () => 'throw 1' } }, 'closed', /the worker failed/],
  [
    'the worker sends something else',
    { 'worker.js': { body: () => 'onmessage = () => postMessage({ type: "ready" })' } },
    'unsupported',
    /no worker of this version/,
  ],
  [
    'the worker is of another version',
    { 'worker.js': { body: (file) => String(file).replaceAll(VERSION, '9.9.9') } },
    'unsupported',
    /the page has version [\d.]+ of nacredb, and its worker 9\.9\.9: deploy/,
  ],
  [
    'the engine is of another version',
    { 'nacre_bg.wasm': { body: renamedImport } },
    'io',
    /different versions of nacredb/,
  ],
  [
    'a policy forbids the worker',
    { '': { headers: { [CSP]: "worker-src 'none'" } } },
    'io',
    /worker-src of the Content-Security-Policy/,
  ],
  [
    'a policy forbids WebAssembly',
    { 'worker.js': { headers: { [CSP]: "script-src 'self'" } } },
    'io',
    /serve the worker's script with 'wasm-unsafe-eval' in script-src/,
  ],
  [
    'a policy forbids to fetch the engine',
    { 'worker.js': { headers: { [CSP]: "connect-src 'none'" } } },
    'io',
    /must allow it in connect-src/,
  ],
  [
    'the page is isolated and its worker is not',
    { '': { headers: { 'cross-origin-embedder-policy': 'require-corp' } } },
    'io',
    /Cross-Origin-Embedder-Policy/,
  ],
];

/** The engine with another name of its first import, as another version could have. */
function renamedImport(file: Buffer): Buffer {
  const copy = Buffer.from(file);
  copy.write('_', copy.indexOf('__wbg'));
  copy.write('X', copy.indexOf('__wbg') + 2);
  return copy;
}

test.each(LOADING)('%s', async (_, overrides, kind, message) => {
  server.overrides = overrides;
  if ('' in overrides) {
    await reload();
  }
  const failed = await failure();
  expect(failed).toMatchObject({ kind, message: expect.stringMatching(message) });
  server.overrides = {};
  if ('' in overrides) {
    await reload();
  }
  expect(await reopened()).toEqual([1, 9]);
});

test('the script of IndexedDB is missing', async () => {
  server.overrides = { 'indexeddb.js': { status: 404 } };
  expect(await failure(undefined, { fallback: 'indexeddb' })).toEqual({
    kind: 'io',
    message: expect.stringMatching(/serve the file indexeddb\.js/) as string,
  });
  server.overrides = {};
  expect(await failure('select 1', { fallback: 'indexeddb' })).toBeNull();
});

test('any media type of the engine will do', async () => {
  for (const type of [
    'text/plain',
    'application/octet-stream',
    'application/wasm; charset=utf-8',
  ]) {
    server.overrides = { 'nacre_bg.wasm': { headers: { 'content-type': type } } };
    expect(await failure()).toBeNull();
    await page.evaluate(() => window.db.close());
  }
});

test.each<[string, Override, RegExp]>([
  ['missing', { status: 404 }, /nacre_more.wasm: HTTP status 404; serve the file/],
  ['a page', HTML, /not WebAssembly: serve it as it is/],
  ['cut short', CUT, /the file is cut short/],
  [
    'of another build',
    { body: (file) => Buffer.concat([file.subarray(0, -1), Buffer.from('x')]) },
    /of different versions of nacredb: deploy/,
  ],
])('the second part of the engine is %s', async (_, override, message) => {
  server.overrides = { 'nacre_more.wasm': override };
  const failed = await failure(NEEDS_MORE);
  expect(failed).toMatchObject({ kind: 'closed', message: expect.stringMatching(message) });
  expect(failed!.message).toMatch(/committed changes are safe, connect again$/);
  server.overrides = {};
  expect(await reopened()).toEqual([1, 2, 9]);
});

test('a worker that ends without a word', async () => {
  expect(await failure('select id from t')).toBeNull();
  await page.evaluate(async () => {
    const { db } = window;
    const kind = (error: nacredb.NacreError): string => error.kind;
    await new Promise<void>((locked) => {
      const open = db.transaction(async (tx) => {
        await tx.exec('insert into t values (3); update t set id = 4 where id = 1');
        locked();
        await new Promise(() => {});
      });
      open.catch(() => {});
    });
    // Waits for the lock of the transaction.
    window.waiting = db.query('delete from t where id = 1').then(() => 'ran', kind);
  });
  void page
    .workers()[0]!
    .evaluate(() => globalThis.close())
    .catch(() => {});
  const failed = await page.evaluate(async () => {
    const waited = await window.waiting;
    const { rows } = await window.db.query<{ id: bigint }>('select id from t order by id');
    return { waited, ids: rows.map(({ id }) => Number(id)) };
  });
  // The tab starts another worker; the statement that waited may have run.
  expect(failed).toEqual({ waited: 'unavailable', ids: [1, 2] });
  expect(await reopened()).toEqual([1, 2, 9]);
});

test('an option that cannot be sent to the worker', async () => {
  const kind = await page.evaluate(async () => {
    const wasmModule = { compile: () => {} } as unknown as WebAssembly.Module;
    const failed = window.nacredb.connect('opfs://failures', { wasmModule });
    return failed.then(
      () => 'open',
      (error: nacredb.NacreError) => error.kind,
    );
  });
  expect(kind).toBe('type');
  expect(await reopened()).toEqual([1, 9]);
});

test('a connection in its own thread leaves nothing locked when the engine fails', async () => {
  const answers = await page.evaluate(async (url) => {
    const code = `
      const { connectInThread } = await import('${url}index.js');
      const answers = [];
      const failed = connectInThread('opfs://failures', { wasmUrl: '${url}missing.wasm' });
      await failed.catch((error) => answers.push(error.kind));
      const began = performance.now();
      const db = await connectInThread('opfs://failures');
      answers.push((await db.query('select count(*) as n from t')).rows[0].n);
      answers.push(performance.now() - began < 1500);
      postMessage(answers);`;
    const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    const worker = new Worker(script, { type: 'module' });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data.map(String));
      worker.onerror = ({ message }) => reject(new Error(message));
    });
  }, server.url);
  expect(answers).toEqual(['io', '1', 'true']);
});

test('a page from a file has memory only, and is told what else it needs', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-file-'));
  const file = path.join(folder, 'page.html');
  const [script, worker, engine] = ['index.js', 'worker.js', 'nacre_bg.wasm'].map((name) =>
    fs.readFileSync(path.join(dist, name)).toString('base64'),
  );
  const imported = `import * as nacredb from 'data:text/javascript;base64,${script}'`;
  const html = `<!doctype html><script type="module">${imported}; window.nacredb = nacredb</script>`;
  fs.writeFileSync(file, html);
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => window.nacredb !== undefined);
  const answers = await page.evaluate(
    async ({ worker, engine }) => {
      const { connect } = window.nacredb;
      const bytes = Uint8Array.from(atob(engine!), (character) => character.charCodeAt(0));
      const parts = {
        workerUrl: `data:text/javascript;base64,${worker}`,
        wasmModule: await WebAssembly.compile(bytes),
      };
      const refused = ({ kind, message }: nacredb.NacreError): string => `${kind}: ${message}`;
      const opened = async (url: string, options?: object): Promise<string> => {
        const db = await connect(url, options);
        const { rows } = await db.query('select 1 as one');
        await db.close();
        return `one: ${rows[0]!['one']}`;
      };
      return [
        await opened('memory://').catch(refused),
        await opened('opfs://failures', parts).catch(refused),
        await opened('memory://', parts).catch(refused),
      ];
    },
    { worker, engine },
  );
  fs.rmSync(folder, { recursive: true });
  expect(answers).toEqual([
    expect.stringMatching(
      /^unsupported: .*serve the page over HTTP, or set workerUrl to a data: URL/,
    ),
    expect.stringMatching(/^unsupported: .*may not use the origin private file system.*memory:/),
    'one: 1',
  ]);
});

test('a worker of another origin is refused, with what to do', async () => {
  const answers = await page.evaluate(() => {
    const refused = ({ kind, message }: nacredb.NacreError): string => `${kind}: ${message}`;
    const options = { workerUrl: 'https://elsewhere.test/worker.js' };
    const opened = ['memory://', 'opfs://failures'].map((url) =>
      window.nacredb.connect(url, options).then(() => 'opened', refused),
    );
    return Promise.all(opened);
  });
  const told = expect.stringMatching(/^io: the worker cannot be started: .*the page's own origin/);
  expect(answers).toEqual([told, told]);
});

test('the quota is exceeded in a commit', async () => {
  const cdp = await context.newCDPSession(page);
  const origin = new URL(server.url).origin;
  const { usage = 0 } = await page.evaluate(() => navigator.storage.estimate());
  await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 3_000_000 });
  await page.evaluate(async () => {
    window.db = await window.nacredb.connect('opfs://failures');
  });
  const filled = await page.evaluate(fillUp);
  expect(filled.errors).toEqual(FULL);
  expect(filled.found).toBe(filled.acknowledged);

  await cdp.send('Storage.overrideQuotaForOrigin', { origin });
  expect(await reopened()).toEqual([1, 9]);
  const found = await page.evaluate(async () => {
    const db = await window.nacredb.connect('opfs://failures');
    const { rows } = await db.query<{ n: bigint }>('select count(*) as n from filler');
    return Number(rows[0]!.n);
  });
  expect(found).toBe(filled.acknowledged);
});
