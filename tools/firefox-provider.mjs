/** Lets vitest run tests in pages of a Firefox that is installed. */

import { defineBrowserProvider } from '@vitest/browser';
import { launchFirefox } from './firefox.mjs';

/** What `browser.provider` of a vitest project takes. */
export const installedFirefox = () =>
  defineBrowserProvider({ name: 'firefox', providerFactory: () => new Provider() });

class Provider {
  name = 'firefox';
  supportsParallelism = true;
  #firefox = null;
  #contexts = new Map();

  getCommandsContext() {
    return {};
  }

  async openPage(session, url) {
    await this.#contexts.get(session)?.close();
    this.#firefox ??= launchFirefox();
    const context = await (await this.#firefox).newContext();
    this.#contexts.set(session, context);
    await (await context.newPage()).goto(url);
  }

  async close() {
    await (await this.#firefox)?.close();
  }
}
