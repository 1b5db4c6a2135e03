/**
 * A link shortener with live statistics. `node ./server.mjs [FOLDER] [PORT]` keeps its links in a
 * folder.
 *
 *     POST /links {"url": "https://…"}   makes a short link
 *     GET  /CODE                         leads there, and records the click
 *     GET  /stats                        the most clicked links, and clicks by hour
 */

import * as http from 'node:http';
import { openLinks } from './links.mjs';

const [folder = './links', port = '8080'] = process.argv.slice(2);
const links = await openLinks(folder);

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (request.method === 'POST' && pathname === '/links') {
    return create(await body(request));
  }
  if (request.method !== 'GET') {
    return { status: 405, text: 'GET or POST only' };
  }
  if (pathname === '/stats') {
    const [top, hours] = await Promise.all([links.top(), links.perHour()]);
    return { status: 200, json: { top, hours } };
  }
  const url = await links.follow(pathname.slice(1), request.headers.referer);
  return url === undefined
    ? { status: 404, text: 'there is no such link' }
    : { status: 302, headers: { location: url } };
}

async function create(text) {
  const { url } = JSON.parse(text);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    return { status: 400, text: 'the address must begin with http:// or https://' };
  }
  return { status: 201, json: { code: await links.add(new URL(url).href) } };
}

async function body(request) {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
  }
  return text;
}

const server = http.createServer(async (request, response) => {
  const { status, headers, text, json } = await answer(request).catch((error) => {
    const wrong = error instanceof SyntaxError || error instanceof TypeError;
    return wrong
      ? { status: 400, text: 'the body must be {"url": "https://…"}' }
      : { status: 500, text: `${error.kind ?? error.name}: ${error.message}` };
  });
  const type = json === undefined ? 'text/plain' : 'application/json';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(json === undefined ? text : JSON.stringify(json));
});

server.listen(Number(port), () => {
  console.log(`links in ${folder} at http://localhost:${server.address().port}/`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
    void links.close();
  });
}
