/** Serves the built package, and an empty page that has it as `window.nacredb`. */

import * as fs from 'node:fs';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';

/** The built package's folder. */
export const dist = path.resolve(import.meta.dirname, '../../bindings/js/dist');
const MEDIA: Record<string, string> = { '.js': 'text/javascript', '.wasm': 'application/wasm' };
const PAGE = `<!doctype html><title>nacredb</title><script type="module">
import * as nacredb from './index.js';
window.nacredb = nacredb;
</script>`;

/** What a server sends instead of a file, or with it. */
export interface Override {
  status?: number;
  headers?: Record<string, string>;
  /** Makes the body of the file's. */
  body?: (file: Buffer) => Buffer | string;
  /** Number of bytes after which the connection breaks. */
  breakAfter?: number;
}

/** A running server. */
export interface Server {
  url: string;
  /** By the name of a file; the page is `''`. */
  overrides: Record<string, Override>;
  close(): void;
}

/** Starts a server on a free port. */
export async function serve(): Promise<Server> {
  const running: Server = { url: '', overrides: {}, close: () => server.close() };
  const server = http.createServer((request, response) => {
    const name = path.basename(request.url ?? '/');
    if (name === '') {
      response
        .writeHead(200, { 'content-type': 'text/html', ...running.overrides['']?.headers })
        .end(PAGE);
      return;
    }
    fs.readFile(path.join(dist, name), (error, data) => {
      const { status, headers, body, breakAfter } = running.overrides[name] ?? {};
      const type = MEDIA[path.extname(name)] ?? 'text/plain';
      const sent = error ? 'not found' : (body?.(data) ?? data);
      response.writeHead(status ?? (error ? 404 : 200), {
        'content-type': type,
        'content-length': Buffer.byteLength(sent),
        ...headers,
      });
      if (breakAfter === undefined) {
        response.end(sent);
      } else {
        response.write(sent.slice(0, breakAfter), () => response.destroy());
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  running.url = `http://localhost:${(server.address() as AddressInfo).port}/`;
  return running;
}
