/**
 * A Firefox to drive, over WebDriver BiDi: only what the tests need. Playwright drives a Firefox of its
 * own, which is another browser than the one that users have. `FIREFOX_PATH` names one explicitly.
 */

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as readline from 'node:readline';
import { Failure, probe, run } from './lib.mjs';

const INSTALLED = [
  '/usr/bin/firefox-esr',
  '/usr/bin/firefox',
  '/snap/bin/firefox',
  '/Applications/Firefox.app/Contents/MacOS/firefox',
  'C:\\Program Files\\Mozilla Firefox\\firefox.exe',
];
const START_MS = 60_000;
const WAIT_MS = 20_000;
const POLL_MS = 30;

/** Path of a Firefox that is installed, or null. */
export function findFirefox() {
  const named = process.env.FIREFOX_PATH;
  const places = named === undefined ? INSTALLED : [named];
  return places.find((place) => fs.existsSync(place)) ?? null;
}

/** Installs Debian's Firefox where that is possible without a password; answers whether there is one. */
export async function ensureFirefox() {
  const mayInstall = process.getuid?.() === 0 && probe('apt-get', ['--version']) !== null;
  if (findFirefox() === null && mayInstall) {
    console.log('setup: installing the package firefox-esr');
    await run('apt-get', ['install', '-y', 'firefox-esr'], { quiet: true }).catch(() => {});
  }
  return findFirefox() !== null;
}

/** Starts a Firefox without windows, with a profile of its own, which has the given preferences. */
export async function launchFirefox(preferences = {}) {
  const program = findFirefox();
  if (program === null) {
    throw new Failure('there is no Firefox: install one, or set FIREFOX_PATH');
  }
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-firefox-'));
  const lines = Object.entries(preferences).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  );
  fs.writeFileSync(path.join(profile, 'user.js'), lines.join(''));
  const args = ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const end = async () => {
    child.kill('SIGKILL');
    await exited;
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const session = await Session.open(`${await listening(child)}/session`);
    return new Firefox(child.pid, session, end);
  } catch (error) {
    await end();
    throw error;
  }
}

/** The address that a Firefox says it listens on. */
function listening(child) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Failure(`Firefox did not start: ${why}`));
    setTimeout(() => fail(`no answer in ${START_MS / 1000} s`), START_MS).unref();
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code) => fail(`it ended with ${code}`));
    readline.createInterface({ input: child.stderr }).on('line', (line) => {
      const address = /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1];
      if (address !== undefined) {
        resolve(address);
      }
    });
  });
}

/** Commands to a Firefox, and their answers. */
class Session {
  #socket;
  #last = 0;
  #pending = new Map();

  static async open(url) {
    // Loaded here, because `npm test` looks for a Firefox before any package is installed.
    const { WebSocket } = await import('ws');
    const session = new Session();
    const socket = new WebSocket(url, { maxPayload: 256 * 2 ** 20 });
    session.#socket = socket;
    await new Promise((resolve, reject) => {
      socket.once('open', resolve).once('error', reject);
    });
    socket.on('message', (data) => session.#receive(JSON.parse(String(data))));
    socket.on('close', () => session.#fail());
    await session.send('session.new', { capabilities: {} });
    return session;
  }

  send(method, params) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { method, resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  #receive({ type, id, result, error, message }) {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (type === 'success') {
      call?.resolve(result);
    } else if (type === 'error') {
      call?.reject(new Error(`${call.method}: ${error}: ${message}`));
    }
  }

  #fail() {
    this.#pending.forEach(({ method, reject }) =>
      reject(new Error(`${method}: Firefox has ended`)),
    );
    this.#pending.clear();
  }
}

/** A running Firefox. */
class Firefox {
  pid;
  #session;
  #end;

  constructor(pid, session, end) {
    this.pid = pid;
    this.#session = session;
    this.#end = end;
  }

  /** Pages in windows as the browser opens them. */
  get defaultContext() {
    return new Context(this.#session, 'default');
  }

  /** A new context: its pages share storage and locks with each other, and with no others. */
  async newContext() {
    const { userContext } = await this.#session.send('browser.createUserContext', {});
    return new Context(this.#session, userContext);
  }

  async close() {
    await this.#end();
  }
}

class Context {
  #session;
  #id;

  constructor(session, id) {
    this.#session = session;
    this.#id = id;
  }

  async newPage() {
    const params = { type: 'tab', userContext: this.#id, background: true };
    const { context } = await this.#session.send('browsingContext.create', params);
    return new Page(this.#session, context);
  }

  /** Closes the context's pages, and removes what they have stored. */
  async close() {
    await this.#session.send('browser.removeUserContext', { userContext: this.#id });
  }
}

/** A tab. */
class Page {
  #session;
  #context;

  constructor(session, context) {
    this.#session = session;
    this.#context = context;
  }

  async goto(url) {
    const params = { context: this.#context, url, wait: 'complete' };
    await this.#session.send('browsingContext.navigate', params);
  }

  async reload() {
    await this.#session.send('browsingContext.reload', {
      context: this.#context,
      wait: 'complete',
    });
  }

  /** Calls a function in the page, with a value and for a value that JSON can carry. */
  async evaluate(work, argument) {
    const { type, result, exceptionDetails } = await this.#session.send('script.callFunction', {
      functionDeclaration: `async (json) => JSON.stringify(await (${work})(JSON.parse(json)))`,
      arguments: [{ type: 'string', value: JSON.stringify(argument ?? null) }],
      target: { context: this.#context },
      awaitPromise: true,
    });
    if (type === 'exception') {
      throw new Error(`in the page: ${exceptionDetails.text}`);
    }
    return result.type === 'string' ? JSON.parse(result.value) : undefined;
  }

  /** Waits until a function is true in the page. */
  async waitForFunction(work, argument) {
    const deadline = Date.now() + WAIT_MS;
    while (!(await this.evaluate(work, argument))) {
      if (Date.now() > deadline) {
        throw new Error(`the page did not get there in ${WAIT_MS / 1000} s: ${work}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async close() {
    await this.#session.send('browsingContext.close', { context: this.#context });
  }
}
