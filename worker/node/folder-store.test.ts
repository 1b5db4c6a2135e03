import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FolderStore } from './folder-store.js';

// The real module, with its calls recorded.
vi.mock('node:fs', { spy: true });

let folder: string;
let stores: FolderStore[] = [];

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-folder-'));
});

afterEach(() => {
  stores.forEach((store) => store.close());
  stores = [];
  fs.rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<FolderStore> {
  const store = await FolderStore.open(folder);
  stores.push(store);
  return store;
}

function text(store: FolderStore, file: number): string {
  const bytes = new Uint8Array(store.len(file));
  store.read(file, 0, bytes);
  return new TextDecoder().decode(bytes);
}

/** What was synced since the records were cleared, in order. */
function synced(): string[] {
  const opened = vi.mocked(fs.openSync).mock;
  const { calls, invocationCallOrder } = vi.mocked(fs.fsyncSync).mock;
  return calls.map(([descriptor], i) => {
    const at = opened.results.findLastIndex(
      ({ value }, k) =>
        value === descriptor && opened.invocationCallOrder[k]! < invocationCallOrder[i]!,
    );
    return String(opened.calls[at]![0]);
  });
}

const hello = new TextEncoder().encode('hello');

test('files are found again after reopening', async () => {
  const first = await open();
  const file = first.create('log-1');
  first.write(file, 0, hello);
  first.sync(file);
  first.close();
  const second = await open();
  expect(second.list()).toEqual(['log-1']);
  expect(text(second, second.open('log-1'))).toBe('hello');
  expect(second.bytes()).toBe(5);
});

test('a relative folder stays where it was when the working directory changes', async () => {
  const before = process.cwd();
  try {
    process.chdir(folder);
    const store = await FolderStore.open('relative');
    stores.push(store);
    process.chdir(os.tmpdir());
    const file = store.create('log-1');
    store.write(file, 0, hello);
    store.sync(file);
    expect(store.list()).toEqual(['log-1']);
    expect(store.bytes()).toBe(5);
    store.remove('log-1');
  } finally {
    process.chdir(before);
  }
  expect(fs.readdirSync(path.join(folder, 'relative'))).toEqual(['LOCK.node']);
});

test('opening makes the entries of the folder, of its parents and of its files durable', async () => {
  const [above, below] = [path.join(folder, 'above'), path.join(folder, 'above', 'below')];
  vi.clearAllMocks();
  stores.push(await FolderStore.open(below));
  expect(synced()).toEqual([folder, above, below]);
  stores.pop()!.close();
  vi.clearAllMocks();
  stores.push(await FolderStore.open(below));
  expect(synced()).toEqual([below]);
});

test('names are unique, missing files are not found, short files are corrupt', async () => {
  const store = await open();
  const file = store.create('a');
  expect(() => store.create('a')).toThrow(expect.objectContaining({ kind: 'already_exists' }));
  expect(() => store.open('b')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(() => store.remove('b')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(() => store.read(file, 0, new Uint8Array(1))).toThrow(
    expect.objectContaining({ kind: 'corrupt' }),
  );
  store.truncate(file, 3);
  expect(text(store, file)).toBe('\0\0\0');
  store.remove('a');
  expect(store.list()).toEqual([]);
});

test('a closed store creates and removes nothing', async () => {
  const store = await open();
  store.release(store.create('a'));
  store.close();
  expect(() => store.create('b')).toThrow(expect.objectContaining({ kind: 'closed' }));
  expect(() => store.remove('a')).toThrow(expect.objectContaining({ kind: 'closed' }));
  expect((await open()).list()).toEqual(['a']);
});

test('the lock is not listed, and refuses a second opening', async () => {
  const store = await open();
  expect(store.list()).toEqual([]);
  await expect(FolderStore.open(folder)).rejects.toThrow(
    expect.objectContaining({ kind: 'in_use' }),
  );
  store.close();
  await open();
});

const DEAD = '4194305 1';
const ID = '0123456789';

/** Makes a lock with an owner's file of this text. */
function lockOf(owner: string, id = ID): void {
  fs.mkdirSync(path.join(folder, 'LOCK.node'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'LOCK.node', `${id}.owner`), owner);
}

/** Calls `during` with the owner text of a process that runs meanwhile. */
async function beside(during: (owner: string) => Promise<void>): Promise<void> {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  try {
    const stat = fs.existsSync('/proc/self/stat')
      ? fs.readFileSync(`/proc/${other.pid}/stat`, 'utf8')
      : '';
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
    await during(`${other.pid} ${start}`);
  } finally {
    const ended = new Promise((resolve) => other.on('close', resolve));
    other.kill('SIGKILL');
    await ended;
  }
}

test('a lock of a running process holds, one of a dead process does not', async () => {
  await beside(async (owner) => {
    lockOf(DEAD, 'aaaaaaaaaa');
    lockOf(owner);
    await expect(FolderStore.open(folder)).rejects.toThrow(
      expect.objectContaining({ kind: 'in_use' }),
    );
  });
  await open();
  expect(fs.readdirSync(folder)).toEqual(['LOCK.node']);
});

test('an owner that unlocks late leaves the next lock alone', async () => {
  const lock = path.join(folder, 'LOCK.node');
  await beside(async (owner) => {
    const store = await open();
    vi.mocked(fs.rmdirSync).mockImplementationOnce((path) => {
      lockOf(owner);
      fs.rmdirSync(path);
    });
    store.close();
    expect(fs.readdirSync(lock)).toEqual([`${ID}.owner`]);
    await expect(FolderStore.open(folder)).rejects.toThrow(
      expect.objectContaining({ kind: 'in_use' }),
    );
  });
});

test('a process that removes a dead owner late leaves the next lock alone', async () => {
  const { rmSync } = await vi.importActual<typeof fs>('node:fs');
  const lock = path.join(folder, 'LOCK.node');
  await beside(async (owner) => {
    for (const before of [1, 2]) {
      lockOf(DEAD);
      fs.writeFileSync(path.join(lock, ID), '');
      let calls = 0;
      vi.mocked(fs.rmSync).mockImplementation((name, options) => {
        if (path.dirname(String(name)) === lock && ++calls === before) {
          // Another process removes it, and a third one locks the folder.
          rmSync(lock, { recursive: true });
          lockOf(owner, 'fedcba9876');
        }
        rmSync(name, options);
      });
      await expect(FolderStore.open(folder)).rejects.toThrow(
        expect.objectContaining({ kind: 'in_use' }),
      );
      expect(fs.readdirSync(lock)).toEqual(['fedcba9876.owner']);
      rmSync(lock, { recursive: true });
    }
    vi.mocked(fs.rmSync).mockImplementation(rmSync);
  });
});

test('an unexpected entry in the lock is named, and abandoned locks beside it are removed', async () => {
  const left = path.join(folder, 'LOCK.node.0123456789');
  fs.mkdirSync(left);
  fs.mkdirSync(`${left.slice(0, -1)}8`);
  fs.utimesSync(left, 1, 1);
  fs.mkdirSync(path.join(folder, 'LOCK.node'));
  fs.writeFileSync(path.join(folder, 'LOCK.node', 'notes'), '');
  await expect(FolderStore.open(folder)).rejects.toThrow(refusal(/contains notes/));
  fs.rmSync(path.join(folder, 'LOCK.node', 'notes'));
  await open();
  expect(fs.readdirSync(folder).sort()).toEqual(['LOCK.node', 'LOCK.node.0123456788']);
});

/** Listens on a socket for as long as `during` takes. */
async function listening(socket: string, during: () => Promise<void>): Promise<void> {
  const script = `require('net').createServer().listen(process.argv[1], () => console.log('listens'))`;
  const other = spawn(process.execPath, ['-e', script, socket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => other.on('close', resolve));
  try {
    await new Promise((resolve) => other.stdout.once('data', resolve));
    await during();
  } finally {
    other.kill('SIGKILL');
    await ended;
  }
}

const refusal = (message: RegExp) =>
  expect.objectContaining({ kind: 'in_use', message: expect.stringMatching(message) });

test.skipIf(process.platform === 'win32')(
  'an owner that accepts connections is alive, in any container',
  async () => {
    lockOf(`${process.pid} 1 boot pid:[1] socket`);
    await listening(path.join(folder, 'LOCK.node', ID), async () => {
      await expect(FolderStore.open(folder)).rejects.toThrow(refusal(/open in process/));
    });
    await open();
  },
);

test.skipIf(process.platform !== 'linux')(
  'an owner in another namespace is not looked up by its process id',
  async () => {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    lockOf(`${process.pid} 1 ${boot} pid:[1] `);
    await expect(FolderStore.open(folder)).rejects.toThrow(refusal(/another container/));
    const namespace = fs.readlinkSync('/proc/self/ns/pid');
    for (const dead of [`another-boot ${namespace} `, `${boot} pid:[1] socket`]) {
      lockOf(`${process.pid} 1 ${dead}`);
      (await open()).close();
    }
  },
);

test.skipIf(process.platform === 'win32')(
  'a native process that accepts connections has the folder',
  async () => {
    await listening(path.join(folder, 'LOCK.sock'), async () => {
      await expect(FolderStore.open(folder)).rejects.toThrow(refusal(/native process/));
      expect(fs.existsSync(path.join(folder, 'LOCK.node'))).toBe(false);
    });
    await open();
  },
);

test.skipIf(process.platform !== 'linux')(
  'the socket of an owner works in a folder with a long name',
  async () => {
    const long = path.join(folder, 'x'.repeat(120));
    const store = await FolderStore.open(long);
    // Only the socket shows that this owner is alive.
    const lock = path.join(long, 'LOCK.node');
    const owner = fs.readdirSync(lock).find((name) => name.endsWith('.owner'))!;
    fs.writeFileSync(path.join(lock, owner), '4194305 1 boot pid:[1] socket');
    const script = `const { connect } = await import(process.argv[1]);
    await connect(process.argv[2]).then(() => console.log('open'), (error) => console.log(error.kind));`;
    const engine = path.resolve('bindings/js/dist/node.js');
    const other = spawn(process.execPath, ['--input-type=module', '-e', script, engine, long]);
    let said = '';
    other.stdout.on('data', (chunk) => (said += chunk));
    await new Promise((resolve) => other.on('close', resolve));
    expect(said.trim()).toBe('in_use');
    store.close();
    expect(fs.readdirSync(long)).toEqual([]);
  },
);
