/**
 * One process at a time on a folder. Node has no advisory file locks, so the lock is a directory, which is
 * made atomically, with a file in it that says who made it. A lock whose owner no longer runs is taken over.
 *
 * On Linux also a lock held by the native `nacre` (an flock on the file LOCK) is seen.
 */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { nacreError } from '../shared/errors.js';

const LOCK_DIRECTORY = 'LOCK.node';
const NATIVE_LOCK = 'LOCK';
/** A lock without an owner file is someone's who is between two system calls, unless it is older than this. */
const UNOWNED_MS = 2000;
const ATTEMPTS = 20;

/** Folders held by this process: a process identifier alone cannot tell our own locks from a predecessor's. */
const held = new Set<string>();
let renames = 0;

/** Holds the folder until the returned function is called; `in_use` when someone else has it. */
export function lockFolder(folder: string): () => void {
  const lock = path.join(fs.realpathSync(folder), LOCK_DIRECTORY);
  if (held.has(lock)) {
    throw nacreError('in_use', `${folder} is already open in this process`);
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (tryMake(lock)) {
      try {
        refuseNative(folder);
      } catch (error) {
        fs.rmSync(lock, { recursive: true, force: true });
        throw error;
      }
      held.add(lock);
      return () => {
        held.delete(lock);
        fs.rmSync(lock, { recursive: true, force: true });
      };
    }
    const owner = readOwner(lock);
    if (owner === null ? isYoung(lock) : isAlive(owner)) {
      const who = owner === null ? 'another process' : `process ${owner.split(' ')[0]}`;
      throw nacreError('in_use', `${folder} is open in ${who}`);
    }
    breakStale(lock, owner);
  }
  throw nacreError('in_use', `${folder} is being opened by several processes`);
}

function tryMake(lock: string): boolean {
  try {
    fs.mkdirSync(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      return false;
    }
    throw error;
  }
  fs.writeFileSync(path.join(lock, 'owner'), identity(process.pid));
  return true;
}

function readOwner(lock: string): string | null {
  try {
    return fs.readFileSync(path.join(lock, 'owner'), 'utf8') || null;
  } catch {
    return null;
  }
}

function isYoung(lock: string): boolean {
  const stat = fs.statSync(lock, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs < UNOWNED_MS;
}

/** Process identifiers are used again, so the moment the process started belongs to it where we can know it. */
function identity(pid: number): string {
  return `${pid} ${startOf(pid)}`;
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

function isAlive(owner: string): boolean {
  const pid = Number(owner.split(' ')[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0) {
    return false;
  }
  if (pid === process.pid && identity(pid) !== owner) {
    return false;
  }
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
      return false;
    }
  }
  const start = startOf(pid);
  return start === '' || owner === `${pid} ${start}`;
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

function refuseNative(folder: string): void {
  let inode: bigint;
  let locks: string;
  try {
    inode = fs.statSync(path.join(folder, NATIVE_LOCK), { bigint: true }).ino;
    locks = fs.readFileSync('/proc/locks', 'utf8');
  } catch {
    return;
  }
  // "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF"
  if (locks.split('\n').some((line) => line.split(/\s+/)[5]?.endsWith(`:${inode}`))) {
    throw nacreError('in_use', `${folder} is open in a native process`);
  }
}
