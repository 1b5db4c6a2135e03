/** Serves the built package, and an empty page that has it as `window.nacredb`. */

import * as fs from 'node:fs';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';

const dist = path.resolve(import.meta.dirname, '../../bindings/js/dist');
const MEDIA: Record<string, string> = { '.js': 'text/javascript', '.wasm': 'application/wasm' };
const PAGE = `<!doctype html><title>nacredb</title><script type="module">
import * as nacredb from './index.js';
window.nacredb = nacredb;
</script>`;

/** A running server. */
export interface Server {
  url: string;
  close(): void;
}

/** Starts a server on a free port. */
export async function serve(): Promise<Server> {
  const server = http.createServer((request, response) => {
    const name = path.basename(request.url ?? '/');
    if (name === '') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
      return;
    }
    fs.readFile(path.join(dist, name), (error, data) => {
      const type = MEDIA[path.extname(name)] ?? 'text/plain';
      response
        .writeHead(error ? 404 : 200, { 'content-type': type })
        .end(error ? 'not found' : data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/`,
    close: () => server.close(),
  };
}
