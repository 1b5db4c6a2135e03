/** Cloudflare's runtime on this machine, with the built package: for tests, and for killing it. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { root } from './lib.mjs';

const DIST = path.join(root, 'bindings/js/dist');
/** Classes of `tests/edge`. */
const CLASSES = { TENANT: 'Tenant', SMALL: 'Small', WAKING: 'Waking', DEAF: 'Deaf' };
const script = (name, from) => ({
  type: 'ESModule',
  path: name,
  contents: fs.readFileSync(from, 'utf8'),
});
const engine = (name) => ({
  type: 'CompiledWasm',
  path: name,
  contents: fs.readFileSync(path.join(DIST, name)),
});

/** Running Workers. */
export class Workers {
  #runtime;
  #pid;

  constructor(runtime, pid) {
    this.#runtime = runtime;
    this.#pid = pid;
  }

  /**
   * Starts a Worker, by default that of `tests/edge`. Its objects, of classes by their names in the
   * environment, keep their storage in a folder, and so does its bucket.
   */
  static async start(folder, { worker = 'tests/edge/tenant.mjs', classes = CLASSES } = {}) {
    const { Miniflare, Log, LogLevel } = await import('miniflare');
    const before = runtimes();
    const runtime = new Miniflare({
      modules: [
        script('worker.mjs', path.resolve(root, worker)),
        script('edge.js', path.join(DIST, 'edge.js')),
        script('blobs.js', path.join(DIST, 'blobs.js')),
        engine('nacre_bg.wasm'),
        engine('nacre_more.wasm'),
      ],
      compatibilityDate: '2026-03-01',
      durableObjects: Object.fromEntries(
        Object.entries(classes).map(([name, className]) => [name, { className, useSQLite: true }]),
      ),
      durableObjectsPersist: folder,
      r2Buckets: ['BUCKET'],
      r2Persist: path.join(folder, 'r2'),
      log: new Log(LogLevel.ERROR),
      // What is killed has nothing more to say.
      handleRuntimeStdio: () => {},
    });
    await runtime.ready;
    const [pid] = runtimes().filter((id) => !before.includes(id));
    return new Workers(runtime, pid);
  }

  /** Sends statements to a path of a tenant, or to a database in memory. */
  async send(tenant, statements, { at = '/sql', headers = {} } = {}) {
    const query = tenant === null ? '' : `?tenant=${tenant}`;
    const response = await this.#runtime.dispatchFetch(`http://localhost${at}${query}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(statements),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Begins a request to a path of a tenant, whose body does not end; answers what breaks it off. */
  begin(tenant, at, headers) {
    const controller = new AbortController();
    const body = new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode('[')) });
    this.#runtime
      .dispatchFetch(`http://localhost${at}?tenant=${tenant}`, {
        method: 'POST',
        headers,
        body,
        duplex: 'half',
        signal: controller.signal,
      })
      .catch(() => {});
    return () => controller.abort();
  }

  /** Opens a socket to a tenant that receives messages; answers what closes it. */
  async listen(tenant, at, receive) {
    const response = await this.#runtime.dispatchFetch(`http://localhost${at}?tenant=${tenant}`, {
      headers: { upgrade: 'websocket' },
    });
    const socket = response.webSocket;
    socket.accept();
    socket.addEventListener('message', ({ data }) => receive(String(data)));
    return () => socket.close();
  }

  /** Memory that the runtime's process has to itself or shares, in bytes. Only on Linux. */
  residentBytes() {
    const status = fs.readFileSync(`/proc/${this.#pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) * 1024;
  }

  /** Ends the runtime's process at once. Only on Linux. */
  kill() {
    process.kill(this.#pid, 'SIGKILL');
  }

  /** Ends the runtime, as a deployment does. */
  async stop() {
    await this.#runtime.dispose();
  }
}

/** Processes of the runtime that this one has started. Empty except on Linux. */
function runtimes() {
  const ids = fs.existsSync('/proc') ? fs.readdirSync('/proc') : [];
  return ids.filter((id) => /^\d+$/.test(id) && isOurs(id)).map(Number);
}

function isOurs(id) {
  try {
    const [, name, , parent] = /^\d+ \((.*)\) (\S) (\d+)/.exec(
      fs.readFileSync(`/proc/${id}/stat`, 'utf8'),
    );
    return name.startsWith('workerd') && Number(parent) === process.pid;
  } catch {
    // It has ended meanwhile.
    return false;
  }
}
