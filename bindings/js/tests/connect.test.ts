/** Browsers only: the origin of the worker and the engine. */

import { connect } from 'nacredb';
import { expect, onTestFinished, test } from 'vitest';
import { connected, durable, expectKind } from './testing.js';

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

test('with preload the second file is there before a statement needs it', async () => {
  const code = (options: string): string => `
    import { connectInThread } from ${JSON.stringify(new URL('index.js', dist).href)};
    // Vitest has rewritten the package's dynamic import.
    globalThis.__vitest_browser_runner__ = { wrapDynamicImport: (load) => load() };
    const compiled = [];
    const compile = WebAssembly.compileStreaming;
    WebAssembly.compileStreaming = (...args) => {
      compiled.push(compile(...args));
      return compiled.at(-1);
    };
    const db = await connectInThread('memory://', ${options});
    const wanted = ${options}.preload ? 2 : 1;
    while (compiled.length < wanted) {
      await new Promise((resolve) => setTimeout(resolve));
    }
    await Promise.all(compiled);
    // What waits for the module runs before the next task.
    await new Promise((resolve) => setTimeout(resolve));
    globalThis.XMLHttpRequest = class {
      constructor() {
        throw new Error('fetched while a statement waits');
      }
    };
    try {
      const totals = db.prepareSync(${JSON.stringify(WINDOW)}).allSync();
      postMessage(totals.map(({ total }) => total));
    } catch (error) {
      postMessage(error.message);
    }
  `;
  expect(await answerOf(code('{ preload: true }'))).toEqual(['1', '3']);
  expect(await answerOf(code('{}'))).toMatch('fetched while a statement waits');
  await expectKind(connect('memory://', { preload: 'yes' as never }), 'type');
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

test('connections share a database, and the next one takes over', async () => {
  const url = await durable.fresh();
  const first = await connected(url);
  const second = await connected(url);
  expect([first.isLeader, second.isLeader]).toEqual([true, false]);
  await first.exec('create table t (id bigint primary key, name text)');
  await second.query('insert into t values (?, ?)', [1, 'shell']);
  expect((await first.query('select name from t')).rows).toEqual([{ name: 'shell' }]);
  const changes: boolean[] = [];
  second.onLeaderChange((isLeader) => changes.push(isLeader));
  const byId = await second.prepare<{ name: string }>('select name from t where id = ?');
  const open = second.transaction(async (tx) => {
    await tx.query('insert into t values (2, ?)', ['lost']);
    await first.close();
    await tx.query('insert into t values (3, ?)', ['lost']);
  });
  await expectKind(open, 'conflict', { retryable: true, mayHaveRun: false });
  expect(await byId.get([1])).toEqual({ name: 'shell' });
  expect((await second.query('select count(*) as n from t')).rows).toEqual([{ n: 1n }]);
  expect([second.isLeader, changes]).toEqual([true, [true]]);
});

test('what a leader closes before answering runs at the next one', async () => {
  const url = await durable.fresh();
  const [first, second] = [await connected(url), await connected(url)];
  await first.exec('create table t (id bigint primary key)');
  const writes: Promise<unknown>[] = [];
  for (let id = 0; id < 300; id++) {
    writes.push(second.query('insert into t values (?)', [id]));
    if (id === 150) {
      void first.close();
    }
    if (id % 10 === 0) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  await Promise.all(writes);
  const { rows } = await second.query('select count(*) as n from t');
  expect(rows).toEqual([{ n: 300n }]);
});

test('a load is finished, or inserts nothing, when its leader closes', async () => {
  const url = await durable.fresh();
  const [first, second] = [await connected(url), await connected(url)];
  await first.exec('create table t (id bigint primary key)');
  let [done, closing] = [0, Promise.resolve()];
  for (let i = 0; i < 10; i++) {
    const id = Array.from({ length: 10 }, (_, j) => 10 * i + j);
    const load = second.insertRows('t', { id });
    if (i === 2) {
      // In the middle of the messages of this load.
      await new Promise((resolve) => setTimeout(resolve, 1));
      closing = first.close();
    }
    try {
      done += await load;
    } catch (error) {
      expect(error).toMatchObject({ kind: 'unavailable', mayHaveRun: false });
    }
  }
  await closing;
  expect(done).toBeGreaterThan(0);
  const { rows } = await second.query('select count(*) as n from t');
  expect(rows).toEqual([{ n: BigInt(done) }]);
});

test('streams, and a transaction that SQL began, end with their leader', async () => {
  const url = await durable.fresh();
  const [first, second] = [await connected(url), await connected(url)];
  await first.exec('create table t (id bigint primary key)');
  const stream = second.stream('select * from generate_series(1, 100000) as g(n)').rows();
  await stream.next();
  await second.exec('begin');
  await second.query('insert into t values (1)');
  await first.close();
  await expectKind(second.query('insert into t values (2)'), 'conflict');
  await second.query('insert into t values (3)');
  expect((await second.query('select id from t')).rows).toEqual([{ id: 3n }]);
  await expectKind(
    (async () => {
      for await (const _ of stream);
    })(),
    'unavailable',
    { mayHaveRun: false },
  );
});

test('only alike connections share a database', async () => {
  const url = await durable.fresh();
  const first = await connected(url);
  await expectKind(connect(url, { durability: 'relaxed' }), 'in_use');
  await expectKind(connect(url, { import: await first.export() }), 'already_exists');
});

test('a database in another thread is in use', async () => {
  const url = await durable.fresh();
  const db = await connected(url);
  const code = `
    import { connectInThread } from ${JSON.stringify(new URL('index.js', dist).href)};
    globalThis.__vitest_browser_runner__ = { wrapDynamicImport: (load) => load() };
    onmessage = async ({ data }) => {
      try {
        const db = await connectInThread(data);
        postMessage('open');
      } catch (error) {
        postMessage(error.kind);
      }
    };
  `;
  const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const worker = new Worker(script, { type: 'module' });
  onTestFinished(() => {
    worker.terminate();
    URL.revokeObjectURL(script);
  });
  const open = (): Promise<string> =>
    new Promise((resolve) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage(url);
    });
  expect(await open()).toBe('in_use');
  await db.close();
  expect(await open()).toBe('open');
  await expectKind(connect(url), 'in_use');
});

/** What a module worker posts that runs this code. */
function answerOf(code: string): Promise<unknown> {
  const script = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const worker = new Worker(script, { type: 'module' });
  onTestFinished(() => {
    worker.terminate();
    URL.revokeObjectURL(script);
  });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
}

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
  expect(await answerOf(code)).toEqual(['name 7', 100n, 'name 7', 100n]);
});
