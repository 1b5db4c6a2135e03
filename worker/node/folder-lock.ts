/**
 * Locks a folder for one process at a time. Node has no advisory file locks, so the lock is a
 * directory; it is free when it is missing or empty. Its owner keeps two entries in it, under an id
 * that no other owner uses: a socket `<id>` on which the owner listens, where the system has Unix
 * sockets, and a file `<id>.owner` with the text `<process id> <start time> <boot id> <process id
 * namespace> socket`. Each of the last four words is empty where the system lacks it.
 *
 * The directory is created under another name with both entries in it, and then renamed; a rename
 * replaces a directory only if it is empty. A socket accepts connections as long as its process
 * lives, in any container. A process id identifies a process only inside one namespace, so it is
 * the second choice.
 *
 * Entries are removed by their names, both by an owner that unlocks and by a process that finds an
 * owner dead. However late such a removal is, it cannot touch the entries of the next owner.
 *
 * The native `nacre` holds an flock on the file LOCK, which Node cannot test, and listens on
 * LOCK.sock. Deno holds the same flock instead of such a directory.
 */

import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { NacreError, nacreError } from '../shared/errors.js';
import { hasOsLocks, tryLockFile } from './os-lock.js';

const LOCK_DIRECTORY = 'LOCK.node';
/** Last word of an owner's file, if the owner listens on its socket. */
const LISTENS = 'socket';
const OWNER = '.owner';
const NATIVE_LOCK = 'LOCK';
const NATIVE_SOCKET = 'LOCK.sock';
/** Longest path of a socket that every system accepts. */
const SOCKET_PATH_BYTES = 100;
/**
 * Age at which a lock that was created but never renamed counts as abandoned: its process died in
 * between.
 */
const ABANDONED_MS = 60_000;
const ATTEMPTS = 20;

/**
 * Locks of this process. Its process id cannot tell them from those of a dead process that had the
 * same id.
 */
const held = new Set<string>();

/**
 * Locks a folder and returns the function that unlocks it. Fails with `in_use` if another process
 * has the lock.
 */
export async function lockFolder(folder: string): Promise<() => void> {
  const real = fs.realpathSync(folder);
  const lock = path.join(real, LOCK_DIRECTORY);
  if (held.has(lock)) {
    throw nacreError('in_use', `${folder} is already open in this process`);
  }
  held.add(lock);
  try {
    const unlock = await (hasOsLocks ? takeOsLock(folder, lock) : take(folder, lock));
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
        removeAbandoned(lock);
        return unlock;
      } catch (error) {
        unlock();
        throw error;
      }
    }
    for (const id of idsIn(folder, lock)) {
      const owner = readOwner(lock, id);
      if (await isAlive(folder, lock, id, owner)) {
        const holder = owner === null ? 'another process' : `process ${owner.split(' ')[0]}`;
        throw nacreError('in_use', `${folder} is open in ${holder}`);
      }
      removeOwner(lock, id);
    }
  }
  throw nacreError('in_use', `${folder} is being opened by several processes`);
}

/** Takes the operating system's lock, unless a process of Node has the directory's. */
async function takeOsLock(folder: string, lock: string): Promise<() => void> {
  const unlock = tryLockFile(path.dirname(lock), NATIVE_LOCK);
  if (unlock === null) {
    throw nacreError('in_use', `${folder} is open in another process`);
  }
  try {
    for (const id of idsIn(folder, lock)) {
      if (await mayBeAlive(folder, lock, id)) {
        throw nacreError('in_use', `${folder} is open in a process of Node`);
      }
      removeOwner(lock, id);
    }
    return unlock;
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Whether the process of Node that an entry names may be running: Deno may not be allowed to look. */
async function mayBeAlive(folder: string, lock: string, id: string): Promise<boolean> {
  try {
    return await isAlive(folder, lock, id, readOwner(lock, id));
  } catch (error) {
    if (error instanceof NacreError) {
      throw error;
    }
    throw new NacreError(
      {
        kind: 'in_use',
        message: `${folder} is open in a process of Node, or was when that process died`,
        hint: `if no process has the database open, remove ${lock}; with --allow-all this is found out`,
      },
      { cause: error },
    );
  }
}

/**
 * Creates the lock and returns the function that removes it; `null` if another owner's entries are
 * in the way.
 */
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
    // Another owner has the lock, or this one took so long to create that another process removed
    // it as abandoned.
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

/** The ids of the owners in the lock. */
function idsIn(folder: string, lock: string): Set<string> {
  const ids = new Set<string>();
  for (const name of readDirectory(lock)) {
    const id = name.endsWith(OWNER) ? name.slice(0, -OWNER.length) : name;
    if (!/^[0-9a-f]{10}$/.test(id)) {
      throw new NacreError({
        kind: 'in_use',
        message: `${folder} cannot be locked: ${lock} contains ${name}`,
        hint: `if no process has the database open, remove ${lock}`,
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

/** The text of an owner's file; `null` if the owner is unlocking. */
function readOwner(lock: string, id: string): string | null {
  try {
    return fs.readFileSync(path.join(lock, id + OWNER), 'utf8') || null;
  } catch (error) {
    return ifGone(lock, error, null);
  }
}

/** Answers `otherwise` if the lock has disappeared meanwhile. */
function ifGone<T>(lock: string, error: unknown, otherwise: T): T {
  if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) {
    return otherwise;
  }
  // The lock belongs to an owner whose state is unknown.
  throw nacreError('in_use', `${lock} cannot be read: ${String(error)}`, error);
}

/**
 * Removes the socket last: a process that finds only the socket learns from it whether the owner
 * lives.
 */
function removeOwner(lock: string, id: string): void {
  fs.rmSync(path.join(lock, id + OWNER), { force: true });
  fs.rmSync(path.join(lock, id), { force: true });
}

function removeEmpty(lock: string): void {
  try {
    fs.rmdirSync(lock);
  } catch {
    // The lock is missing, or another owner has it.
  }
}

/** Removes abandoned locks. A failure changes nothing: they keep no process out. */
function removeAbandoned(lock: string): void {
  const [folder, prefix] = [path.dirname(lock), `${path.basename(lock)}.`];
  try {
    for (const name of fs.readdirSync(folder).filter((name) => name.startsWith(prefix))) {
      const abandoned = path.join(folder, name);
      if (Date.now() - fs.statSync(abandoned).mtimeMs > ABANDONED_MS) {
        fs.rmSync(abandoned, { recursive: true, force: true });
      }
    }
  } catch {
    // The next process tries again.
  }
}

/**
 * Listens on a socket and returns the function that stops; `null` where the system has no sockets.
 */
function listen(lock: string, id: string): (() => void) | null {
  const address = addressOf(lock, id);
  if (address === null) {
    return null;
  }
  // An accepted connection is all that the other process needs to know.
  const server = net.createServer((connection) => connection.destroy());
  server.on('error', () => {});
  try {
    // Without `exclusive`, a cluster worker's socket would belong to its parent process, which
    // outlives it.
    server.listen({ path: address.path, exclusive: true }).unref();
  } catch {
    // The system does not permit it.
  }
  if (!server.listening) {
    server.close(address.release);
    return null;
  }
  return () => server.close(address.release);
}

/** Whether a process listens on a socket; `undefined` if that cannot be determined. */
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
    // EAGAIN: the socket's queue of connections is full, so a process listens.
    return code === 'EAGAIN' ? true : code === 'ECONNREFUSED' ? false : undefined;
  } finally {
    address.release();
  }
}

/**
 * The address of a socket in a folder; `null` where the system has no sockets. A long path goes
 * through /proc.
 */
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
    // The lock has disappeared meanwhile.
  }
  return null;
}

/**
 * What gives a process id its meaning: the boot and the namespace; empty where the system does not
 * tell.
 */
function realm(): [boot: string, namespace: string] {
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return [boot, fs.readlinkSync('/proc/self/ns/pid')];
  } catch {
    return ['', ''];
  }
}

/**
 * Text that identifies this process. Process ids are reused, so it includes the start time where
 * the system tells.
 */
function identity(listens: boolean): string {
  return [process.pid, startOf(process.pid), ...realm(), listens ? LISTENS : ''].join(' ');
}

/** A process's start time in clock ticks since boot; empty where the system does not tell. */
function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses, and may contain spaces and
    // parentheses.
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/**
 * Whether an owner's process is running. The socket decides if it can; otherwise the owner's file
 * does.
 */
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
    // The process ended in order, which removed its socket, without closing the database.
    return false;
  }
  const [ourBoot, ourNamespace] = realm();
  if (boot && ourBoot) {
    if (boot !== ourBoot) {
      return false;
    }
    if (namespace && namespace !== ourNamespace) {
      throw new NacreError({
        kind: 'in_use',
        message: `${folder} is open in another container`,
        hint: `if no process has the database open, remove ${lock}`,
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
  // A lock older than the process, or than the system's start, belongs to an earlier process of
  // this id.
  const seconds = pid === process.pid ? process.uptime() : os.uptime();
  const stat = fs.statSync(lock, { throwIfNoEntry: false });
  return stat !== undefined && stat.mtimeMs >= Date.now() - seconds * 1000;
}

/** Fails with `in_use` if a native process has the folder. */
async function refuseNative(folder: string, real: string): Promise<void> {
  if ((await answers(real, NATIVE_SOCKET)) === true || isLocked(path.join(real, NATIVE_LOCK))) {
    throw nacreError('in_use', `${folder} is open in a native process`);
  }
}

/** Whether a process of this namespace has an flock on a file. */
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
