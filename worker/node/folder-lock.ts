/**
 * One process at a time on a folder. Node has no advisory file locks, so the lock is a directory, which is
 * made atomically. In it are a socket on which its owner listens, where the system has those, and a file
 * `owner`: `<process id> <start time> <boot id> <namespace of process ids> socket`, each of the last four empty
 * where the system has no such thing. A socket is answered for as long as its process lives, in whatever container; a process
 * id means something only in its own. A lock whose owner no longer runs is taken over.
 *
 * The native `nacre` holds an flock on the file LOCK, which cannot be tried here, and listens on LOCK.sock.
 */

import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { NacreError, nacreError } from '../shared/errors.js';

const LOCK_DIRECTORY = 'LOCK.node';
const SOCKET = 'socket';
const NATIVE_LOCK = 'LOCK';
const NATIVE_SOCKET = 'LOCK.sock';
/** A socket's path may not be longer on some systems. */
const SOCKET_PATH_BYTES = 100;
/** A lock without an owner file is someone's who is between two system calls, unless it is older than this. */
const UNOWNED_MS = 2000;
const ATTEMPTS = 20;

/** Folders held by this process: a process identifier alone cannot tell our own locks from a predecessor's. */
const held = new Set<string>();
let renames = 0;

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
        return unlock;
      } catch (error) {
        unlock();
        throw error;
      }
    }
    const owner = readOwner(lock);
    if (owner === null ? isYoung(lock) : await isAlive(folder, lock, owner)) {
      const who = owner === null ? 'another process' : `process ${owner.split(' ')[0]}`;
      throw nacreError('in_use', `${folder} is open in ${who}`);
    }
    breakStale(lock, owner);
  }
  throw nacreError('in_use', `${folder} is being opened by several processes`);
}

/** Makes the lock; `null` when there is one. */
function tryMake(lock: string): (() => void) | null {
  try {
    fs.mkdirSync(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      return null;
    }
    throw error;
  }
  const unlisten = listen(lock);
  const unlock = () => {
    unlisten?.();
    fs.rmSync(lock, { recursive: true, force: true });
  };
  try {
    // Not before the socket: who finds an owner asks there.
    fs.writeFileSync(path.join(lock, 'owner'), identity(unlisten !== null));
  } catch (error) {
    unlock();
    throw error;
  }
  return unlock;
}

function readOwner(lock: string): string | null {
  try {
    return fs.readFileSync(path.join(lock, 'owner'), 'utf8') || null;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) {
      return null;
    }
    // Somebody made it whom we cannot ask.
    throw nacreError('in_use', `${lock} cannot be read: ${String(error)}`, error);
  }
}

function isYoung(lock: string): boolean {
  const stat = fs.statSync(lock, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs < UNOWNED_MS;
}

/** Listens on the lock's socket until it is called; `null` where there are no sockets. */
function listen(lock: string): (() => void) | null {
  const address = addressOf(lock, SOCKET);
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
  return [process.pid, startOf(process.pid), ...place(), listens ? SOCKET : ''].join(' ');
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

async function isAlive(folder: string, lock: string, owner: string): Promise<boolean> {
  const [id, started, boot, namespace, listens] = owner.split(' ');
  const answer = await answers(lock, SOCKET);
  if (answer !== undefined) {
    return answer;
  }
  if (listens === SOCKET && !fs.existsSync(path.join(lock, SOCKET))) {
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
  const pid = Number(id);
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

/** Moves a dead owner's lock away; puts it back when someone else was quicker and the lock is theirs by now. */
function breakStale(lock: string, owner: string | null): void {
  const aside = `${lock}.${process.pid}.${renames++}`;
  try {
    fs.renameSync(lock, aside);
  } catch {
    return;
  }
  if (readOwner(aside) !== owner) {
    try {
      fs.renameSync(aside, lock);
      return;
    } catch {
      // A third process made the lock meanwhile; the one moved away is nobody's any more.
    }
  }
  fs.rmSync(aside, { recursive: true, force: true });
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
