/** Databases in IndexedDB: a script of its own, which only pages without a private file system load. */

export { IdbStore } from './idb-store.js';
