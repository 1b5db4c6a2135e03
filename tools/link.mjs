/**
 * A slow link, for benches: a TCP proxy on this machine with a round trip and a rate, which all
 * connections share. A new connection costs a round trip before its first byte.
 */

import { once } from 'node:events';
import * as net from 'node:net';

/** Bytes under way for each connection and direction, after which its source waits. */
const WINDOW = 1 << 20;

/** How a request begins, where it begins a packet. */
const REQUEST = /^(GET|HEAD|PUT|POST|DELETE|OPTIONS) /;

/**
 * Forwards to the server at `to`, a URL. `counted` has the requests and the bytes of their answers,
 * `stop` ends it.
 */
export async function startLink({ to, roundTripMs, bitsPerSecond }) {
  const { hostname, port } = new URL(to);
  const bytesPerMs = bitsPerSecond / 8_000;
  // Each direction has the whole rate, as a cable has.
  const directions = { up: { free: 0 }, down: { free: 0 } };
  const sockets = new Set();
  const counted = { requests: 0, bytes: 0 };
  const server = net.createServer((client) => {
    const upstream = net.connect(Number(port), hostname);
    const opened = performance.now() + roundTripMs;
    pump(client, upstream, directions.up, opened);
    pump(upstream, client, directions.down, opened);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => other.destroy());
      socket.on('close', () => sockets.delete(socket));
    }
  });

  /** Sends on what comes from a socket, when the link has carried it. */
  function pump(from, into, direction, opened) {
    const underWay = [];
    let bytes = 0;
    let timer;
    const deliver = () => {
      timer = undefined;
      const now = performance.now();
      while (underWay.length > 0 && underWay[0].arrives <= now) {
        const { data } = underWay.shift();
        if (data === null) {
          into.end();
          return;
        }
        bytes -= data.length;
        into.write(data);
      }
      if (from.isPaused() && bytes < WINDOW) {
        from.resume();
      }
      wait();
    };
    // One timer for what arrives first: several could end in another order.
    const wait = () => {
      if (timer === undefined && underWay.length > 0) {
        timer = setTimeout(deliver, Math.max(0, underWay[0].arrives - performance.now()));
      }
    };
    const send = (data) => {
      direction.free =
        Math.max(direction.free, performance.now()) + (data?.length ?? 0) / bytesPerMs;
      const arrives = Math.max(direction.free, opened) + roundTripMs / 2;
      underWay.push({ data, arrives });
      wait();
    };
    from.on('data', (data) => {
      if (direction === directions.down) {
        counted.bytes += data.length;
      } else if (REQUEST.test(data.subarray(0, 8).toString('latin1'))) {
        counted.requests += 1;
      }
      bytes += data.length;
      if (bytes >= WINDOW) {
        from.pause();
      }
      send(data);
    });
    from.on('end', () => send(null));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${server.address().port}`,
    counted: () => ({ ...counted }),
    async stop() {
      server.close();
      sockets.forEach((socket) => socket.destroy());
      await new Promise((resolve) => setTimeout(resolve, 0));
    },
  };
}
