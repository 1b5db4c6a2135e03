/**
 * A real S3 server for tests: versitygw, on this machine. It is installed with Go beside the build when a
 * test asks for it, where the tests in Rust look for it, too.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { exclusively, freePort, probe, run, target } from './lib.mjs';

/** The same as in `bindings/blobs/tests/support/gateway.rs`. */
const VERSION = 'v1.8.0';
const folder = path.join(target, 'tools', `versitygw-${VERSION}`);

/** The program; why it cannot be had, if it is not there and cannot be installed. */
async function program() {
  if (process.env.NACRE_VERSITYGW !== undefined) {
    return { file: process.env.NACRE_VERSITYGW };
  }
  const file = path.join(folder, 'versitygw');
  return exclusively('versitygw', async () => {
    if (!fs.existsSync(file)) {
      if (probe('go', ['version']) === null) {
        return { reason: 'there is no Go to install versitygw with' };
      }
      fs.mkdirSync(folder, { recursive: true });
      const source = `github.com/versity/versitygw/cmd/versitygw@${VERSION}`;
      try {
        await run('go', ['install', source], { quiet: true, env: { GOBIN: folder } });
      } catch (error) {
        return { reason: error.message };
      }
    }
    return { file };
  });
}

/**
 * Starts a server with an empty bucket, which `origin` may use from a page. Answers `null` where it cannot
 * be had. `stop` ends it; `folder` has a folder for each bucket.
 */
export async function startGateway({ bucket = 'bucket', origin = '*' } = {}) {
  const { file, reason } = await program();
  if (file === undefined) {
    console.log(`skipped: no S3 server: ${reason}`);
    return null;
  }
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-gateway-'));
  fs.mkdirSync(path.join(scratch, bucket));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const keys = ['--access', 'tester', '--secret', 'not-a-secret'];
  const server = [
    '--quiet',
    '--cors-allow-origin',
    origin,
    '--port',
    address,
    '--health',
    '/health',
  ];
  const child = spawn(file, [...keys, ...server, 'posix', scratch], { stdio: 'ignore' });
  const endpoint = `http://${address}`;
  const until = Date.now() + 20_000;
  for (;;) {
    const answer = await fetch(`${endpoint}/health`).catch(() => undefined);
    if (answer !== undefined) {
      break;
    }
    if (child.exitCode !== null) {
      console.log(`skipped: the S3 server ended with ${child.exitCode}`);
      return null;
    }
    if (Date.now() > until) {
      throw new Error(`versitygw does not answer at ${endpoint}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    endpoint,
    folder: scratch,
    credentials: { accessKeyId: 'tester', secretAccessKey: 'not-a-secret' },
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      fs.rmSync(scratch, { recursive: true, force: true });
    },
  };
}
