/**
 * One process at a time on a folder. Node has no advisory file locks, so the lock is a directory, which is free when
 * it is empty or not there. Its owner has two names in it that nobody had before: a socket `<id>` on which it listens,
 * where the system has those, and a file `<id>.owner`: `<process id> <start time> <boot id> <namespace of process ids>
 * socket`, each of the last four empty where the system has no such thing. The directory is made aside with both in it
 * and renamed, which the system does only onto an empty one. A socket is answered for as long as its process lives, in
 * whatever container; a process id means something only in its own.
 *
 * What a dead owner left is removed by its names, as what an owner gives back is: whoever is late, for however long,
 * cannot touch what belongs to the next one.
 *
 * The native `nacre` holds an flock on the file LOCK, which cannot be tried here, and listens on LOCK.sock.
 */

import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { NacreError, nacreError } from '../shared/errors.js';

const LOCK_DIRECTORY = 'LOCK.node';
/** Last in an owner's file: it listens. */
const LISTENS = 'socket';
const OWNER = '.owner';
const NATIVE_LOCK = 'LOCK';
const NATIVE_SOCKET = 'LOCK.sock';
/** A socket's path may not be longer on some systems. */
const SOCKET_PATH_BYTES = 100;
/** A lock that was made and never put in its place is someone's who did not live to do it, when it is older. */
const LEFT_MS = 60_000;
const ATTEMPTS = 20;

/** Folders held by this process: a process identifier alone cannot tell our own locks from a predecessor's. */
const held = new Set<string>();

/** Holds the folder until the returned function is called; `in_use` when someone else has it. */
export async function lockFolder(folder: string): Promise<() => void> {
  const real = fs.realpathSync(folder);
  const lock = path.join(real, LOCK_DIRECTORY);
  if (held.has(lock)) {
    throw nacreError('in_use', `${folder} is already open in this process`);
  }
  held.add(lock);
  try {
    const unlock = await take(folder, lock);
    return () => {
      held.delete(lock);
      unlock();
    };
  } catch (error) {
    held.delete(lock);
    throw error;
  }
}

async function take(folder: string, lock: string): Promise<() => void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const unlock = tryMake(lock);
    if (unlock !== null) {
      try {
        await refuseNative(folder, path.dirname(lock));
        removeLeft(lock);
        return unlock;
      } catch (error) {
        unlock();
        throw error;
      }
    }
    for (const id of idsIn(folder, lock)) {
      const owner = readOwner(lock, id);
      if (await isAlive(folder, lock, id, owner)) {
        const who = owner === null ? 'another process' : `process ${owner.split(' ')[0]}`;
        throw nacreError('in_use', `${folder} is open in ${who}`);
      }
      removeOwner(lock, id);
    }
  }
  throw nacreError('in_use', `${folder} is being opened by several processes`);
}

/** Makes the lock; `null` when somebody is in the way. */
function tryMake(lock: string): (() => void) | null {
  const id = randomBytes(5).toString('hex');
  const aside = `${lock}.${id}`;
  fs.mkdirSync(aside);
  let unlisten: (() => void) | null = null;
  try {
    unlisten = listen(aside, id);
    fs.writeFileSync(path.join(aside, id + OWNER), identity(unlisten !== null));
    removeEmpty(lock);
    fs.renameSync(aside, lock);
  } catch (error) {
    unlisten?.();
    fs.rmSync(aside, { recursive: true, force: true });
    // Somebody's lock; or the one that was made was taken for left behind, if making it took so long.
    if (fs.existsSync(lock) || (error as NodeJS.ErrnoException).code === 'ENOENT') {
      return null;
    }
    throw error;
  }
  return () => {
    removeOwner(lock, id);
    unlisten?.();
    removeEmpty(lock);
  };
}

/** Whose names are in the lock. */
function idsIn(folder: string, lock: string): Set<string> {
  const ids = new Set<string>();
  for (const name of readDirectory(lock)) {
    const id = name.endsWith(OWNER) ? name.slice(0, -OWNER.length) : name;
    if (!/^[0-9a-f]{10}$/.test(id)) {
      throw new NacreError({
        kind: 'in_use',
        message: `${folder} is not free: ${lock} has ${name} in it`,
        hint: `if no process has it open any more, remove ${lock}`,
      });
    }
    ids.add(id);
  }
  return ids;
}

function readDirectory(lock: string): string[] {
  try {
    return fs.readdirSync(lock);
  } catch (error) {
    return ifGone(lock, error, []);
  }
}

/** What somebody wrote of itself; `null` when it is being given back. */
function readOwner(lock: string, id: string): string | null {
  try {
    return fs.readFileSync(path.join(lock, id + OWNER), 'utf8') || null;
  } catch (error) {
    return ifGone(lock, error, null);
  }
}

function ifGone<T>(lock: string, error: unknown, otherwise: T): T {
  if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) {
    return otherwise;
  }
  // Somebody made it whom we cannot ask.
  throw nacreError('in_use', `${lock} cannot be read: ${String(error)}`, error);
}

/** The socket last: who finds it alone asks there. */
function removeOwner(lock: string, id: string): void {
  fs.rmSync(path.join(lock, id + OWNER), { force: true });
  fs.rmSync(path.join(lock, id), { force: true });
}

function removeEmpty(lock: string): void {
  try {
    fs.rmdirSync(lock);
  } catch {
    // It is not there, or somebody's.
  }
}

/** Nobody is kept out by what cannot be removed. */
function removeLeft(lock: string): void {
  const [folder, prefix] = [path.dirname(lock), `${path.basename(lock)}.`];
  try {
    for (const name of fs.readdirSync(folder).filter((name) => name.startsWith(prefix))) {
      const left = path.join(folder, name);
      if (Date.now() - fs.statSync(left).mtimeMs > LEFT_MS) {
        fs.rmSync(left, { recursive: true, force: true });
      }
    }
  } catch {
    // It stays.
  }
}

/** Listens on a socket until it is called; `null` where there are no sockets. */
function listen(lock: string, id: string): (() => void) | null {
  const address = addressOf(lock, id);
  if (address === null) {
    return null;
  }
  // That the system takes a connection is the answer.
  const server = net.createServer((connection) => connection.destroy());
  server.on('error', () => {});
  try {
    // A worker of a cluster would leave its socket to its parent, which outlives it.
    server.listen({ path: address.path, exclusive: true }).unref();
  } catch {
    // Not permitted.
  }
  if (!server.listening) {
    server.close(address.release);
    return null;
  }
  return () => server.close(address.release);
}

/** Whether somebody listens on a socket; `undefined` when that cannot be known. */
async function answers(folder: string, name: string): Promise<boolean | undefined> {
  const address = addressOf(folder, name);
  if (address === null) {
    return undefined;
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const connection = net.connect(address.path, () => {
        connection.destroy();
        resolve();
      });
      connection.on('error', reject);
    });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // More may wait there than the system lets in.
    return code === 'EAGAIN' ? true : code === 'ECONNREFUSED' ? false : undefined;
  } finally {
    address.release();
  }
}

/** Where to bind or connect to a socket in a folder; `null` where there are none. */
function addressOf(folder: string, name: string): { path: string; release: () => void } | null {
  if (process.platform === 'win32') {
    return null;
  }
  const direct = path.join(folder, name);
  if (Buffer.byteLength(direct) <= SOCKET_PATH_BYTES) {
    return { path: direct, release: () => {} };
  }
  try {
    const descriptor = fs.openSync(folder, 'r');
    const through = `/proc/self/fd/${descriptor}`;
    if (fs.existsSync(through)) {
      return { path: `${through}/${name}`, release: () => fs.closeSync(descriptor) };
    }
    fs.closeSync(descriptor);
  } catch {
    // The lock has gone meanwhile.
  }
  return null;
}

/** What a process id means something in, where we can know it: the boot and the namespace. */
function place(): [boot: string, namespace: string] {
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return [boot, fs.readlinkSync('/proc/self/ns/pid')];
  } catch {
    return ['', ''];
  }
}

/** Process identifiers are used again, so the moment the process started belongs to it where we can know it. */
function identity(listens: boolean): string {
  return [process.pid, startOf(process.pid), ...place(), listens ? LISTENS : ''].join(' ');
}

function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses and may contain anything.
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

async function isAlive(
  folder: string,
  lock: string,
  id: string,
  owner: string | null,
): Promise<boolean> {
  const answer = await answers(lock, id);
  if (answer !== undefined) {
    return answer;
  }
  if (owner === null) {
    return false;
  }
  const [number, started, boot, namespace, listens] = owner.split(' ');
  if (listens === LISTENS && !fs.existsSync(path.join(lock, id))) {
    // It ended in order, though it did not close the database.
    return false;
  }
  const [ourBoot, ourNamespace] = place();
  if (boot && ourBoot) {
    if (boot !== ourBoot) {
      return false;
    }
    if (namespace && namespace !== ourNamespace) {
      throw new NacreError({
        kind: 'in_use',
        message: `${folder} is open in another container`,
        hint: `if no process has it open any more, remove ${lock}`,
      });
    }
  }
  const pid = Number(number);
  if (!Number.isSafeInteger(pid) || pid <= 0) {
    return false;
  }
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
      return false;
    }
  }
  const now = startOf(pid);
  if (now !== '' && started) {
    return now === started;
  }
  // No process made a lock before it was started.
  const seconds = pid === process.pid ? process.uptime() : os.uptime();
  const stat = fs.statSync(lock, { throwIfNoEntry: false });
  return stat !== undefined && stat.mtimeMs >= Date.now() - seconds * 1000;
}

async function refuseNative(folder: string, real: string): Promise<void> {
  if ((await answers(real, NATIVE_SOCKET)) === true || isLocked(path.join(real, NATIVE_LOCK))) {
    throw nacreError('in_use', `${folder} is open in a native process`);
  }
}

/** Whether a process that we can see has an flock on a file. */
function isLocked(file: string): boolean {
  try {
    const inode = fs.statSync(file, { bigint: true }).ino;
    // "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF"
    const locks = fs.readFileSync('/proc/locks', 'utf8').split('\n');
    return locks.some((line) => line.split(/\s+/)[5]?.endsWith(`:${inode}`));
  } catch {
    return false;
  }
}
