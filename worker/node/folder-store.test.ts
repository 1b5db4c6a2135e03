import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FolderStore } from './folder-store.js';

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

function open(): FolderStore {
  const store = FolderStore.open(folder);
  stores.push(store);
  return store;
}

function text(store: FolderStore, file: number): string {
  const bytes = new Uint8Array(store.len(file));
  store.read(file, 0, bytes);
  return new TextDecoder().decode(bytes);
}

const hello = new TextEncoder().encode('hello');

test('files are there again', () => {
  const first = open();
  const file = first.create('log-1');
  first.write(file, 0, hello);
  first.sync(file);
  first.close();
  const second = open();
  expect(second.list()).toEqual(['log-1']);
  expect(text(second, second.open('log-1'))).toBe('hello');
  expect(second.bytes()).toBe(5);
});

test('names are unique, missing files are not found, short files are corrupt', () => {
  const store = open();
  const file = store.create('a');
  expect(() => store.create('a')).toThrow(expect.objectContaining({ kind: 'already_exists' }));
  expect(() => store.open('b')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(() => store.remove('b')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(() => store.read(file, 0, new Uint8Array(1))).toThrow(expect.objectContaining({ kind: 'corrupt' }));
  store.truncate(file, 3);
  expect(text(store, file)).toBe('\0\0\0');
  store.remove('a');
  expect(store.list()).toEqual([]);
});

test('the lock is not listed, and keeps a second opening out', () => {
  const store = open();
  expect(store.list()).toEqual([]);
  expect(() => FolderStore.open(folder)).toThrow(expect.objectContaining({ kind: 'in_use' }));
  store.close();
  open();
});

test('a lock of a running process holds, one of a dead process does not', async () => {
  const lock = path.join(folder, 'LOCK.node');
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  try {
    fs.mkdirSync(lock);
    const stat = fs.existsSync('/proc/self/stat') ? fs.readFileSync(`/proc/${other.pid}/stat`, 'utf8') : '';
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
    fs.writeFileSync(path.join(lock, 'owner'), `${other.pid} ${start}`);
    expect(() => FolderStore.open(folder)).toThrow(expect.objectContaining({ kind: 'in_use' }));
  } finally {
    const ended = new Promise((resolve) => other.on('close', resolve));
    other.kill('SIGKILL');
    await ended;
  }
  open();
  expect(fs.readdirSync(folder)).toEqual(['LOCK.node']);
});
