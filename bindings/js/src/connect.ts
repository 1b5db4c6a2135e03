/** Opens databases in a browser: each one's engine runs in a worker of its own. */

import { answerAt } from '../../../worker/shared/blobs/asking.js';
import { nacreError, type NacreError } from '../../../worker/shared/errors.js';
import { Database } from './database.js';
import { blobsOption, typeOptions, type Blobs, type ConnectOptions } from './options.js';
import { openRequest } from './request.js';
import type { AnySchema } from './schema.js';
import { browserHost, canShare } from './tab-host.js';
import { Tab } from './tab.js';
import type { ThreadDatabase } from './thread-database.js';
import { workerTransport } from './worker-transport.js';

/**
 * Opens a database, creating it if it does not exist.
 *
 * In browsers, `opfs://name` keeps it in this origin's private file system; in Node, a path or
 * `file:///path` keeps it in that folder. `memory://` keeps nothing after closing. The
 * tabs of an origin share a database: one has it open, the others send it their calls. Fails with
 * `in_use` if another process has the same database open, or a tab in a way that cannot be shared.
 *
 * @example
 * ```ts
 * const db = await connect('opfs://app');
 * await db.exec('create table if not exists visit (id bigint primary key, page text)');
 * await db.close();
 * ```
 *
 * A type with the rows of each table makes the compiler know tables and rows:
 *
 * @example
 * ```ts
 * interface Schema {
 *   visit: { id: bigint; page: string };
 * }
 * const db = await connect<Schema>('memory://');
 * await db.exec('create table visit (id bigint primary key, page text)');
 * await db.insertRows('visit', [{ id: 1, page: 'home' }]);
 * const { rows } = await db.query('select * from visit where id = ?', [1]);
 * console.log(rows[0]?.page.toUpperCase()); // HOME
 * await db.close();
 * ```
 */
export async function connect<S extends object = AnySchema>(
  url: string,
  options: ConnectOptions = {},
): Promise<Database<S>> {
  const types = typeOptions(options);
  const blobs = blobsOption(url, options);
  const request = openRequest(url, options, blobs);
  const startWorker = () => workerTransport(answering(makeWorker(options.workerUrl), blobs));
  if (url.startsWith('opfs://')) {
    // Only a page can ask for persistence. The answer may wait for the user, and opening does not
    // depend on it.
    globalThis.navigator?.storage?.persist?.().catch(() => {});
    if (canShare()) {
      const tab = new Tab(browserHost(startWorker), request);
      await tab.start();
      return new Database<S>({ transport: tab, types });
    }
  }
  const transport = startWorker();
  try {
    await transport.call('open', request);
  } catch (error) {
    transport.end();
    throw error;
  }
  return new Database<S>({ transport, types });
}

/**
 * Opens a database whose engine runs in the calling thread: in Node, or in a dedicated worker of a
 * browser. Calls need no messages, and prepared statements also run synchronously. A page that calls
 * it gets an error of kind `unsupported`.
 *
 * @example
 * ```ts
 * const db = await connectInThread('memory://');
 * await db.exec("create table t (id int primary key, name text); insert into t values (1, 'a')");
 * const byId = await db.prepare<{ name: string }>('select name from t where id = ?');
 * console.log(byId.getSync([1])); // { name: 'a' }
 * await db.close();
 * ```
 */
export async function connectInThread<S extends object = AnySchema>(
  url: string,
  options: ConnectOptions = {},
): Promise<ThreadDatabase<S>> {
  // A script of its own, beside this one: most pages never load it.
  const thread = await import('./thread.js');
  return thread.connectInThread<S>(url, options);
}

/** Hands a worker the channel over which it asks for credentials. */
function answering(worker: Worker, { asks, ask }: Blobs): Worker {
  if (asks) {
    const { port1, port2 } = new MessageChannel();
    answerAt(port1, ask);
    worker.postMessage([], [port2]);
  }
  return worker;
}

function makeWorker(url: string | URL | undefined): Worker {
  if (typeof Worker === 'undefined') {
    throw nacreError('unsupported', 'this environment has no workers, and the engine runs in one');
  }
  try {
    // Bundlers recognise exactly this expression, and bundle the worker and its WebAssembly file.
    return url === undefined
      ? new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
      : new Worker(url, { type: 'module' });
  } catch (error) {
    throw notStarted(error);
  }
}

/** The error of a worker that the browser refuses at once, with what to do about it. */
function notStarted(error: unknown): NacreError {
  const reason = `the worker cannot be started: ${String(error)}`;
  if (globalThis.location?.protocol === 'file:') {
    const advice = 'serve the page over HTTP, or set workerUrl to a data: URL of its script';
    return nacreError(
      'unsupported',
      `${reason}; a page from a file cannot load it: ${advice}`,
      error,
    );
  }
  if (/TrustedScriptURL/.test(reason)) {
    return nacreError('io', `${reason}; set workerUrl to a TrustedScriptURL`, error);
  }
  const advice =
    "its script must come from the page's own origin: copy it there, and set workerUrl";
  return nacreError('io', `${reason}; ${advice}`, error);
}
