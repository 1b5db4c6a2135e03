/** Starts Workers with the built package in the real runtime. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { Miniflare } from 'miniflare';

const ROOT = path.resolve(import.meta.dirname, '../..');
const DIST = path.join(ROOT, 'bindings/js/dist');

/** Rows of each statement, or what went wrong. */
export type Answer = { status: number; body: unknown };

/** Running Workers. */
export class Workers {
  readonly #runtime: Miniflare;

  private constructor(runtime: Miniflare) {
    this.#runtime = runtime;
  }

  /** Starts the test's Worker, whose objects keep their storage in a folder. */
  static async start(folder: string): Promise<Workers> {
    const script = (name: string, from: string) => ({
      type: 'ESModule' as const,
      path: name,
      contents: fs.readFileSync(from, 'utf8'),
    });
    const engine = (name: string) => ({
      type: 'CompiledWasm' as const,
      path: name,
      contents: fs.readFileSync(path.join(DIST, name)),
    });
    const runtime = new Miniflare({
      modules: [
        script('tenant.mjs', path.join(import.meta.dirname, 'tenant.mjs')),
        script('edge.js', path.join(DIST, 'edge.js')),
        engine('nacre_bg.wasm'),
        engine('nacre_more.wasm'),
      ],
      compatibilityDate: '2026-03-01',
      durableObjects: { TENANT: { className: 'Tenant', useSQLite: true } },
      durableObjectsPersist: folder,
    });
    await runtime.ready;
    return new Workers(runtime);
  }

  /** Sends statements to a path of a tenant, or to a database in memory. */
  async send(
    tenant: string | null,
    statements: [string, unknown[]?][],
    { at = '/sql', headers = {} }: { at?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const query = tenant === null ? '' : `?tenant=${tenant}`;
    const response = await this.#runtime.dispatchFetch(`http://localhost${at}${query}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(statements),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Opens a socket to a tenant that receives messages. */
  async listen(tenant: string, at: string, receive: (text: string) => void): Promise<() => void> {
    const response = await this.#runtime.dispatchFetch(`http://localhost${at}?tenant=${tenant}`, {
      headers: { upgrade: 'websocket' },
    });
    const socket = response.webSocket!;
    socket.accept();
    socket.addEventListener('message', ({ data }) => receive(String(data)));
    return () => socket.close();
  }

  /** Ends the runtime, as a deployment or a failure of its machine does. */
  async stop(): Promise<void> {
    await this.#runtime.dispose();
  }
}
