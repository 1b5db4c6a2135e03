// A static server as small as it can be: the files of `dist`, their media types, and the headers
// that `build.mjs` has written. `node server.mjs [PORT]`

import * as fs from 'node:fs';
import * as http from 'node:http';
import * as path from 'node:path';

const MEDIA = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  // With this type the engine is compiled while it arrives.
  '.wasm': 'application/wasm',
};
const dist = path.join(import.meta.dirname, 'dist');
const headers = JSON.parse(fs.readFileSync(path.join(dist, 'headers.json'), 'utf8'));

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  const name = path.join(dist, pathname === '/' ? 'index.html' : path.normalize(pathname));
  fs.readFile(name, (error, data) => {
    const type = error ? 'text/plain' : (MEDIA[path.extname(name)] ?? 'application/octet-stream');
    response.writeHead(error ? 404 : 200, { ...headers, 'content-type': type });
    response.end(error ? 'not found' : data);
  });
});

server.listen(Number(process.argv[2] ?? 8080), 'localhost', () =>
  console.log(`http://localhost:${server.address().port}/`),
);
