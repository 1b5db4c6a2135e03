import { afterEach, expect, test } from 'vitest';

interface Driver {
  call(method: string, ...args: unknown[]): Promise<unknown>;
  worker: Worker;
}

const drivers: Driver[] = [];
let names = 0;

function driver(): Driver {
  const worker = new Worker(new URL('./opfs-store.harness.ts', import.meta.url), {
    type: 'module',
  });
  const made = {
    worker,
    call: (...message: [string, ...unknown[]]) =>
      new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) =>
          'error' in data ? reject(data.error) : resolve(data.result);
        worker.onerror = (event) =>
          reject(new Error(event.message || 'the worker could not be loaded'));
        worker.postMessage(message);
      }),
  };
  drivers.push(made);
  return made;
}

/** A name that no other test uses, at any time. */
function freshName(): string {
  return `store-test-${Date.now()}-${names++}`;
}

async function started(name: string): Promise<Driver> {
  const made = driver();
  await made.call('start', name);
  return made;
}

afterEach(() => {
  drivers.splice(0).forEach(({ worker }) => worker.terminate());
});

test('files are found again after a worker was killed', async () => {
  const name = freshName();
  const first = await started(name);
  const file = await first.call('create', 'log-1');
  await first.call('put', file, 'hello');
  await first.call('sync', file);
  first.worker.terminate();

  const second = await started(name);
  expect(await second.call('list')).toEqual(['log-1']);
  const again = await second.call('open', 'log-1');
  expect(await second.call('len', again)).toBe(5);
  expect(await second.call('get', again)).toBe('hello');
});

test('names are unique, and missing files are not found', async () => {
  const store = await started(freshName());
  await store.call('create', 'a');
  await expect(store.call('create', 'a')).rejects.toMatchObject({ kind: 'already_exists' });
  await expect(store.call('create', 'no/slash')).rejects.toMatchObject({ kind: 'type' });
  await expect(store.call('open', 'b')).rejects.toMatchObject({ kind: 'not_found' });
  await expect(store.call('remove', 'b')).rejects.toMatchObject({ kind: 'not_found' });
});

test('a removed file leaves no bytes to the next one', async () => {
  const name = freshName();
  const store = await started(name);
  const file = await store.call('create', 'old');
  await store.call('put', file, 'secret');
  await store.call('remove', 'old');
  await expect(store.call('len', file)).rejects.toMatchObject({ kind: 'not_found' });
  for (let i = 0; i < 6; i++) {
    expect(await store.call('len', await store.call('create', `new-${i}`))).toBe(0);
  }
});

test('reading past the end is corrupt, and truncating shortens and extends', async () => {
  const store = await started(freshName());
  const file = await store.call('create', 'a');
  await store.call('put', file, 'hello');
  await expect(store.call('read', file, 3, new Uint8Array(3))).rejects.toMatchObject({
    kind: 'corrupt',
  });
  await store.call('truncate', file, 2);
  expect(await store.call('get', file)).toBe('he');
  await store.call('truncate', file, 4);
  expect(await store.call('get', file)).toBe('he\0\0');
});

test('spare files are replenished, and running out of them is a limit', async () => {
  const store = await started(freshName());
  const make = async (count: number, prefix: string) => {
    for (let i = 0; i < count; i++) {
      await store.call('create', `${prefix}${i}`);
    }
  };
  await make(6, 'a');
  await store.call('prepare');
  await make(6, 'b');
  await store.call('prepare');
  await expect(make(100, 'c')).rejects.toMatchObject({ kind: 'limit' });
});

test('after a shortage there are more spare files, and some are reserved for the log', async () => {
  const store = await started(freshName());
  const make = async (prefix: string) => {
    let made = 0;
    for (; ; made++) {
      try {
        await store.call('create', `${prefix}${made}`);
      } catch (error) {
        expect(error).toMatchObject({ kind: 'limit' });
        return made;
      }
    }
  };
  expect(await store.call('ranShort')).toBe(false);
  const first = await make('seg-a');
  expect(await store.call('ranShort')).toBe(true);
  await store.call('create', 'log-1');
  await store.call('create', 'snap-1');
  await expect(store.call('create', 'log-2')).rejects.toMatchObject({ kind: 'limit' });
  await store.call('prepare');
  expect(await store.call('ranShort')).toBe(false);
  await store.call('create', 'log-2');
  const second = await make('seg-b');
  expect(second).toBeGreaterThan(first);
  await store.call('prepare');
  expect(await make('seg-c')).toBeGreaterThan(second);
  for (let i = 0; i < 10 && (await store.call('ranShort')); i++) {
    await store.call('prepare');
    await make(`seg-d${i}-`);
  }
  // The pool cannot grow further, and the error says so.
  expect(await store.call('ranShort')).toBe(false);
  await store.call('create', 'log-3');
});

test('two workers cannot open one directory', async () => {
  const name = freshName();
  const first = await started(name);
  await expect(driver().call('start', name)).rejects.toMatchObject({ kind: 'in_use' });
  await first.call('close');
  await started(name);
});

test('opening waits for a worker that is being killed', async () => {
  const name = freshName();
  const first = await started(name);
  setTimeout(() => first.worker.terminate(), 300);
  await started(name);
});

test('one damaged copy of a header is survived, and two free the file', async () => {
  const name = freshName();
  const first = await started(name);
  for (const file of ['kept', 'lost']) {
    const id = await first.call('create', file);
    await first.call('put', id, `data of ${file}`);
    await first.call('sync', id);
  }
  await first.call('close');
  await first.call('damage', name, 'data of kept', [20]);
  await first.call('damage', name, 'data of lost', [20, 2068]);

  const second = await started(name);
  expect(await second.call('list')).toEqual(['kept']);
  expect(await second.call('get', await second.call('open', 'kept'))).toBe('data of kept');
});

test('files of another version are refused and left unchanged', async () => {
  const name = freshName();
  const first = await started(name);
  for (const file of ['mine', 'theirs']) {
    const id = await first.call('create', file);
    await first.call('put', id, `data of ${file}`);
    await first.call('sync', id);
  }
  await first.call('close');
  await first.call('version', name, 'data of theirs', 2);
  await expect(driver().call('start', name)).rejects.toMatchObject({ kind: 'unsupported' });
  await first.call('version', name, 'data of theirs', 1);

  const second = await started(name);
  expect(await second.call('list')).toHaveLength(2);
  expect(await second.call('get', await second.call('open', 'theirs'))).toBe('data of theirs');
});

test('of two files of one name the newer counts, and the older is freed', async () => {
  const name = freshName();
  const first = await started(name);
  for (const text of ['older', 'younger']) {
    const id = await first.call('create', text);
    await first.call('put', id, `data of ${text}`);
    await first.call('sync', id);
  }
  await first.call('close');
  await first.call('rename', name, 'data of older', 'younger');

  const second = await started(name);
  expect(await second.call('list')).toEqual(['younger']);
  expect(await second.call('get', await second.call('open', 'younger'))).toBe('data of younger');
  await second.call('close');
  await expect(second.call('damage', name, 'data of older', [])).rejects.toMatchObject({
    message: /no file/,
  });
});

test('a name that cannot be a directory is refused', async () => {
  await expect(driver().call('start', '../up')).rejects.toMatchObject({ kind: 'type' });
});
