/** Browsers only: the origin of the worker and the engine. */

import { connect } from 'nacredb';
import { expect, onTestFinished, test } from 'vitest';
import { connected, expectKind } from './testing.js';

const dist = new URL('/bindings/js/dist/', location.href);

test('the engine and the worker can have other URLs', async () => {
  const db = await connected('memory://', {
    workerUrl: new URL('worker.js', dist),
    wasmUrl: new URL('nacre_bg.wasm', dist),
  });
  expect((await db.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('the caller can compile the engine', async () => {
  const response = await fetch(new URL('nacre_bg.wasm', dist));
  const wasmModule = await WebAssembly.compile(await response.arrayBuffer());
  const [first, second] = await Promise.all([
    connected('memory://', { wasmModule }),
    connected('memory://', { wasmModule }),
  ]);
  await first.exec('create table t (a int)');
  await expectKind(second.query('select * from t'), 'not_found');
});

const WINDOW = 'select a, sum(a) over (order by a) as total from (values (1), (2)) as t(a)';
const TOTALS = [
  { a: 1, total: '1' },
  { a: 2, total: '3' },
];

test('what most pages do needs the first file only', async () => {
  const db = await connected('memory://', { moreWasmUrl: 'http://localhost:1/no.wasm' });
  await db.exec('create table t (id bigint primary key, name text)');
  await db.query('insert into t values (?, ?), (2, ?)', [1, 'shell', 'pearl']);
  await db.query('update t set name = ? where id = ?', ['nacre', 1]);
  expect((await db.query('select name from t where id = 1')).rows).toEqual([{ name: 'nacre' }]);
  expect((await db.query('select count(*) as n from t')).rows).toEqual([{ n: 2n }]);
  const failed = db.query(WINDOW);
  await expectKind(failed, 'closed');
  await expect(failed).rejects.toThrow('cannot fetch http://localhost:1/no.wasm');
  await expectKind(db.query('select 1'), 'closed');
});

test('the second file is fetched when it is needed, wherever it is', async () => {
  const response = await fetch(new URL('nacre_more.wasm', dist));
  const moreWasmModule = await WebAssembly.compile(await response.arrayBuffer());
  for (const options of [
    {},
    { wasmUrl: new URL('nacre_bg.wasm', dist) },
    { moreWasmUrl: new URL('nacre_more.wasm', dist) },
    { moreWasmUrl: 'http://localhost:1/no.wasm', moreWasmModule },
  ]) {
    const db = await connected('memory://', options);
    expect((await db.query(WINDOW)).rows).toEqual(TOTALS);
  }
});

test('missing files are errors', async () => {
  await expectKind(connect('memory://', { wasmUrl: 'http://localhost:1/no.wasm' }), 'io');
  await expectKind(connect('memory://', { workerUrl: new URL('no-worker.js', dist) }), 'io');
  await expectKind(connect('memory://', { wasmUrl: new URL('worker.js', dist) }), 'io');
});

test('invalid URLs and options are refused before anything is opened', async () => {
  await expectKind(connect('memory://', { wasmUrl: 'http://' }), 'type');
  await expectKind(connect('memory://', { moreWasmUrl: 'http://' }), 'type');
  await expectKind(
    connect('memory://', { workerUrl: 'https://elsewhere.example/worker.js' }),
    'io',
  );
  await expectKind(connect('memory://', { types: { bigint: 'string' as never } }), 'type');
  await expectKind(connect('memory://', { types: { numbers: 'number' } as never }), 'type');
});

test('folders are for Node', async () => {
  await expectKind(connect('/tmp/folder'), 'unsupported');
  await expectKind(connect('opfs://../up'), 'type');
});

test('a dedicated worker runs the engine in its own thread', async () => {
  const code = `
    import { connectInThread } from ${JSON.stringify(new URL('index.js', dist).href)};
    // Vitest has rewritten the package's dynamic import.
    globalThis.__vitest_browser_runner__ = { wrapDynamicImport: (load) => load() };
    const answers = [];
    try {
      for (const url of ['memory://', 'opfs://thread-${Date.now()}']) {
        const db = await connectInThread(url);
        await db.exec('create table t (id bigint primary key, name text)');
        const insert = await db.prepare('insert into t values (?, ?)');
        for (let id = 1; id <= 100; id++) {
          insert.runSync([id, 'name ' + id]);
        }
        const byId = db.prepareSync('select name from t where id = ?');
        answers.push(byId.getSync([7]).name);
        const file = await db.export();
        await db.close();
        const copy = await connectInThread('memory://', { import: file });
        answers.push(copy.prepareSync('select count(*) as n from t').getSync().n);
        await copy.close();
      }
    } catch (error) {
      answers.push(String(error));
    }
    postMessage(answers);
  `;
  const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const worker = new Worker(script, { type: 'module' });
  onTestFinished(() => {
    worker.terminate();
    URL.revokeObjectURL(script);
  });
  const answers = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
  expect(answers).toEqual(['name 7', 100n, 'name 7', 100n]);
});
