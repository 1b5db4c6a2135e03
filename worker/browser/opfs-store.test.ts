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

test('a large file is removed for good, and a small one is used again', async () => {
  const name = freshName();
  const store = await started(name);
  const entries = await store.call('entries', name);
  await store.call('create', 'small');
  await store.call('remove', 'small');
  expect(await store.call('entries', name)).toBe(entries);
  const large = await store.call('create', 'large');
  await store.call('truncate', large, 9 * 2 ** 20);
  await store.call('remove', 'large');
  await expect(store.call('len', large)).rejects.toMatchObject({ kind: 'not_found' });
  await expect.poll(() => store.call('entries', name)).toBe((entries as number) - 1);
  expect(await store.call('list')).toEqual([]);
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

/** More files than there may be handles. */
const MANY = 400;
const MAX_HANDLES = 220;
/** These tests open and sync hundreds of files. */
const SLOW = { timeout: 90_000 };

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; !(await holds());) {
    expect(Date.now()).toBeLessThan(end);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('there are more files than handles, and all of them are read', SLOW, async () => {
  const name = freshName();
  const store = await started(name);
  await store.call('fill', 'log-', 0, 2);
  await store.call('fill', 'seg-', 0, MANY);
  expect(await store.call('list')).toHaveLength(MANY + 2);
  expect(await store.call('handles', name)).toBeLessThanOrEqual(MAX_HANDLES + 1);
  expect(await store.call('wrong', 'seg-', 0, MANY)).toEqual([]);
  const first = await store.call('open', 'seg-0');
  expect(await store.call('len', first)).toBe('data of seg-0'.length);
  await expect(store.call('read', first, 9, new Uint8Array(9))).rejects.toMatchObject({
    kind: 'corrupt',
  });
  store.worker.terminate();

  const second = await started(name);
  expect(await second.call('list')).toHaveLength(MANY + 2);
  // Few are opened: the log, and spare files.
  expect(await second.call('handles', name)).toBeLessThan(40);
  expect(await second.call('wrong', 'seg-', 0, MANY)).toEqual([]);
  expect(await second.call('wrong', 'log-', 0, 2)).toEqual([]);
  await second.call('put', await second.call('open', 'log-1'), 'more');
  await second.call('fill', 'idx-', 0, 100);
  expect(await second.call('wrong', 'idx-', 0, 100)).toEqual([]);
  expect(await second.call('handles', name)).toBeLessThanOrEqual(MAX_HANDLES + 1);
});

test('a file without a handle is removed, and not found again', SLOW, async () => {
  const name = freshName();
  const first = await started(name);
  await first.call('fill', 'seg-', 0, MANY);
  const file = await first.call('open', 'seg-3');
  for (let at = 0; at < MANY; at += 2) {
    await first.call('remove', `seg-${at}`);
  }
  await first.call('remove', 'seg-3');
  await expect(first.call('len', file)).rejects.toMatchObject({ kind: 'not_found' });
  await first.call('fill', 'seg-', 3, 4);
  await first.call('close');

  const second = await started(name);
  expect(await second.call('list')).toHaveLength(MANY / 2);
  expect(await second.call('wrong', 'seg-', 3, 4)).toEqual([]);
  // Spare files, the lock and the files that are left.
  expect(await second.call('entries', name)).toBeLessThan(MANY / 2 + 40);
});

test(
  'a file that is read often gets a handle, and a file that is not gives one up',
  SLOW,
  async () => {
    const name = freshName();
    const first = await started(name);
    await first.call('fill', 'seg-', 0, MANY);
    await first.call('close');

    const store = await started(name);
    const before = (await store.call('handles', name)) as number;
    const read = async (from: number, to: number) => {
      for (let round = 0; round < 20; round++) {
        expect(await store.call('wrong', 'seg-', from, to)).toEqual([]);
      }
    };
    await read(0, 30);
    await eventually(async () => (await store.call('handles', name)) === before + 30);
    await read(30, MANY);
    await eventually(async () => ((await store.call('handles', name)) as number) > before + 100);
    const most = await store.call('handles', name);
    expect(most).toBeLessThanOrEqual(MAX_HANDLES + 1);
    expect(await store.call('wrong', 'seg-', 0, MANY)).toEqual([]);
  },
);

test(
  'a file that is not durable keeps its handle, and one without is not written',
  SLOW,
  async () => {
    const name = freshName();
    const store = await started(name);
    const open = await store.call('create', 'seg-open');
    await store.call('put', open, 'unsynced');
    await store.call('fill', 'seg-', 0, MANY);
    await store.call('put', open, 'rewritten');
    await store.call('sync', open);
    expect(await store.call('get', open)).toBe('rewritten');
    const cold = await store.call('open', 'seg-0');
    await store.call('sync', cold);
    await expect(store.call('put', cold, 'late')).rejects.toMatchObject({ kind: 'io' });
    await expect(store.call('truncate', cold, 1)).rejects.toMatchObject({ kind: 'io' });
    expect(await store.call('wrong', 'seg-', 0, 1)).toEqual([]);
  },
);

test('many files are created at once, after a shortage, although as many exist', SLOW, async () => {
  const store = await started(freshName());
  await store.call('fill', 'seg-', 0, MANY);
  let made = 0;
  for (let attempt = 0; attempt < 6 && made < 150; attempt++) {
    try {
      for (; made < 150; made++) {
        await store.call('create', `seg-new-${made}`);
      }
    } catch (error) {
      expect(error).toMatchObject({ kind: 'limit' });
      expect(await store.call('ranShort')).toBe(true);
      await store.call('prepare');
    }
  }
  expect(made).toBe(150);
});
