/** Browsers only: the origin of the worker and the engine. */

import { connect } from 'nacredb';
import { expect, test } from 'vitest';
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

test('missing files are errors', async () => {
  await expectKind(connect('memory://', { wasmUrl: 'http://localhost:1/no.wasm' }), 'io');
  await expectKind(connect('memory://', { workerUrl: new URL('no-worker.js', dist) }), 'io');
  await expectKind(connect('memory://', { wasmUrl: new URL('worker.js', dist) }), 'io');
});

test('invalid URLs and options are refused before anything is opened', async () => {
  await expectKind(connect('memory://', { wasmUrl: 'http://' }), 'type');
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
