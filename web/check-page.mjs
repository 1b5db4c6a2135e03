/**
 * The demo's page as `check.mjs` sees it: runs statements from the editor or the shelf, and reads
 * their figures from the page. Collects errors of the page and of its console, and fails the next
 * step on them.
 */

import { createRequire } from 'node:module';

import { Failure } from '../tools/lib.mjs';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const STEP_MS = 90_000;

export class Page {
  #page;
  #problems = [];
  #missing = null;

  static async open(context) {
    return new Page(await context.newPage());
  }

  constructor(page) {
    this.#page = page;
    page.setDefaultTimeout(STEP_MS);
    page.on('pageerror', (error) => this.#problems.push(error.stack ?? error.message));
    page.on('console', (message) => {
      const { url } = message.location();
      if (message.type() === 'error' && (this.#missing === null || !url.includes(this.#missing))) {
        this.#problems.push(`${message.text()} (${url})`);
      }
    });
  }

  #mustBeQuiet() {
    if (this.#problems.length > 0) {
      throw new Failure(`the page reports: ${this.#problems.join('\n')}`);
    }
  }

  async goto(address) {
    await this.#page.goto(address);
  }

  async reload() {
    await this.#page.reload();
  }

  async close() {
    this.#mustBeQuiet();
    await this.#page.close();
  }

  /** Waits for an element. Fails with the text of the screen `failed` if that appears instead. */
  async waitFor(selector, timeout = STEP_MS) {
    const failed = '[data-screen=failed]';
    const wanted = this.#page.locator(selector).first();
    await wanted.or(this.#page.locator(failed)).first().waitFor({ timeout });
    this.#mustBeQuiet();
    if (selector !== failed && (await this.#page.locator(failed).count()) > 0) {
      throw new Failure(await this.textOf(failed));
    }
  }

  async textOf(selector) {
    return (await this.#page.locator(selector).first().innerText()).trim();
  }

  /** Presses a button that opens another tab; answers that. */
  async opens(selector) {
    const opened = this.#page.context().waitForEvent('page');
    await this.click(selector);
    return new Page(await opened);
  }

  count(selector) {
    return this.#page.locator(selector).count();
  }

  async click(selector) {
    await this.#page.locator(selector).first().click();
  }

  /** Runs a statement of the shelf. */
  take(query) {
    return this.#running(() => this.#page.locator(`[data-query=${query}]`).click());
  }

  /** Presses one of the buttons beside an open transaction. */
  endTransaction(how) {
    return this.#running(() =>
      this.#page.locator('.editor-transaction button', { hasText: how }).click(),
    );
  }

  /** Types a script and runs it with the keyboard. */
  run(script) {
    return this.#running(async () => {
      await this.#type(script);
      await this.#page.keyboard.press('Control+Enter');
    });
  }

  async #type(script) {
    await this.#page.locator('.cm-content').click();
    await this.#page.keyboard.press('ControlOrMeta+A');
    await this.#page.keyboard.insertText(script);
  }

  /** Presses Explain, with a script if one is given. */
  explain(script) {
    return this.#running(async () => {
      if (script !== undefined) {
        await this.#type(script);
      }
      await this.#page.locator('.editor-bar button', { hasText: 'Explain' }).click();
    });
  }

  /** The text in the editor. */
  async script() {
    return (await this.#page.locator('.cm-line').allTextContents()).join('\n');
  }

  /** Runs an endless script, and stops it; answers how that ended, and what could be used meanwhile. */
  async stop(script) {
    await this.#type(script);
    await this.#page.keyboard.press('Control+Enter');
    await this.waitFor('.stop');
    const cards = await this.count('.card:not(:disabled)');
    const since = Date.now();
    const loads = [];
    const noted = () => loads.push(Date.now());
    this.#page.on('load', noted);
    await this.click('.stop');
    await this.#page.locator('.stop').waitFor({ state: 'detached' });
    this.#page.off('load', noted);
    return { cards, loads: loads.length, ms: Date.now() - since };
  }

  /** Resets the data, and confirms. */
  async reset() {
    this.#page.once('dialog', (dialog) => void dialog.accept());
    await this.click('[aria-label="Reset the data"]');
    await this.waitFor('.loading');
    await this.waitFor('.console', 60_000);
  }

  /** Number of cells of the result whose text is truncated. */
  cut() {
    return this.#page.evaluate(
      () =>
        [...document.querySelectorAll('.results td')].filter(
          (cell) => cell.scrollWidth > cell.clientWidth,
        ).length,
    );
  }

  /** Runs a query for one value, and answers its text. */
  async one(sql) {
    const { text, kind } = await this.run(sql);
    if (kind !== undefined) {
      throw new Failure(`${sql}: ${kind}`);
    }
    return text;
  }

  async number(sql) {
    return Number(await this.one(sql));
  }

  async #running(start) {
    const results = this.#page.locator('.results');
    const before = await results.getAttribute('data-run');
    await start();
    await this.#page.waitForFunction(
      (old) => {
        const now = document.querySelector('.results');
        return now.dataset.run !== old && now.getAttribute('aria-busy') === 'false';
      },
      before,
      { timeout: STEP_MS },
    );
    this.#mustBeQuiet();
    return this.#page.evaluate(readAnswer);
  }

  /** Opens a file with the button's input, and waits for the table or the failure. */
  async openFile(file) {
    const results = this.#page.locator('.results');
    const before = await results.getAttribute('data-run');
    await this.#page.locator('input[type=file]').setInputFiles(file);
    return this.#imported(before);
  }

  /** Drops a file on the window, and waits for the table or the failure. */
  async dropFile({ name, buffer }) {
    const before = await this.#page.locator('.results').getAttribute('data-run');
    const transfer = await this.#page.evaluateHandle(
      ([file, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], file));
        return data;
      },
      [name, [...buffer]],
    );
    await this.#page.dispatchEvent('body', 'dragenter', { dataTransfer: transfer });
    await this.#page.locator('.drop').waitFor();
    await this.#page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
    return this.#imported(before);
  }

  async #imported(before) {
    await this.#page.waitForFunction(
      (old) => {
        const now = document.querySelector('.results');
        const failed = document.querySelector('.import[data-state=failed]');
        return failed || (now.dataset.run !== old && now.getAttribute('aria-busy') === 'false');
      },
      before,
      { timeout: STEP_MS },
    );
    this.#mustBeQuiet();
    const failed = this.#page.locator('.import[data-state=failed]');
    if ((await failed.count()) > 0) {
      const text = (await failed.innerText()).trim();
      await failed.locator('button').click();
      return { failure: text };
    }
    return this.#page.evaluate(readAnswer);
  }

  /** Number of tables in the storage view. */
  tables() {
    return this.count('.sample');
  }

  /** Types of a table's columns, as its legend has them. */
  columnTypes() {
    return this.#page.evaluate(() =>
      [...document.querySelectorAll('.columns tbody th')]
        .map((cell) => `${cell.textContent} ${cell.title}`)
        .join(', '),
    );
  }

  async chooseTable(name) {
    await this.#page.locator('.sample', { hasText: name }).first().click();
    await this.waitFor(`.section[data-table=${JSON.stringify(name)}]`);
  }

  async flush() {
    await this.#running(() => this.#page.locator('.section-head button').click());
    await this.#page.locator('.grains').waitFor({ state: 'detached' });
  }

  /** What the storage view shows of the chosen table. */
  layers() {
    return this.#page.evaluate(() => {
      const section = document.querySelector('.section');
      const stacks = [...section.querySelectorAll('.stack')];
      return {
        drawn:
          stacks.length > 0 && stacks.every((stack) => stack.getBoundingClientRect().height > 4),
        segments: stacks.length,
        grains: section.querySelectorAll('.grains circle').length,
        pits: section.querySelectorAll('.pit').length,
        summary: section.querySelector('header p').textContent,
      };
    });
  }

  async look(viewport, colorScheme) {
    await this.#page.setViewportSize(viewport);
    await this.#page.emulateMedia({ colorScheme });
    await this.#page.waitForTimeout(300);
  }

  /** Pixels by which the page is wider than the window. */
  overflow() {
    return this.#page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
  }

  /** Saves what the window shows or, with `whole`, the page in its full height. */
  async screenshot(file, { whole = false } = {}) {
    await this.#page.screenshot({ path: file, fullPage: whole });
  }

  async waitForText(selector, pattern, timeout = STEP_MS) {
    await this.#page.locator(selector, { hasText: pattern }).waitFor({ timeout });
    this.#mustBeQuiet();
  }

  /** Number of files with a part of a name that the page has fetched. */
  fetched(part) {
    return this.#page.evaluate(
      (wanted) =>
        performance.getEntriesByType('resource').filter(({ name }) => name.includes(wanted)).length,
      part,
    );
  }

  /** Chooses how the result is shown: `Table`, `Plan` or `Chart`. */
  async view(name) {
    await this.#page.locator('.results .choice label', { hasText: name }).click();
    this.#mustBeQuiet();
  }

  /** Presses Profile. */
  profile(script) {
    return this.#running(async () => {
      await this.#type(script);
      await this.#page.locator('.editor-bar button', { hasText: 'Profile' }).click();
    });
  }

  /** Texts of all elements. */
  texts(selector) {
    return this.#page.locator(selector).allInnerTexts();
  }

  /** Chooses another scale, and confirms. */
  async chooseScale(scale) {
    this.#page.once('dialog', (dialog) => void dialog.accept());
    await this.#page.locator('.bar-scale select').selectOption(scale);
    await this.waitFor('.loading');
  }

  /** Milliseconds from the start of the navigation to the first paint with content. */
  firstPaint() {
    return this.#page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
    );
  }

  /** What axe finds wrong, one line per rule. Colours change at once, so that it measures no mixture. */
  async axe() {
    if (!(await this.#page.evaluate(() => 'axe' in window))) {
      await this.#page.addScriptTag({ path: AXE });
      await this.#page.addStyleTag({ content: '* { transition: none !important }' });
    }
    return this.#page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
      return violations.map(
        ({ id, nodes }) =>
          `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('; ')}`,
      );
    });
  }

  wait(ms) {
    return this.#page.waitForTimeout(ms);
  }

  press(key) {
    return this.#page.keyboard.press(key);
  }

  /** The element with the focus: its tag and what it is called. */
  focused() {
    return this.#page.evaluate(() => {
      const now = document.activeElement;
      return `${now.tagName.toLowerCase()} ${now.getAttribute('aria-label') ?? now.textContent.trim().slice(0, 24)}`;
    });
  }

  workers() {
    return this.#page.workers().length;
  }

  /** Number of entries in the origin private file system whose names begin with a prefix. */
  stored(prefix) {
    return this.#page.evaluate(async (wanted) => {
      const folder = await navigator.storage.getDirectory();
      const names = await Array.fromAsync(folder.keys());
      return names.filter((name) => name.startsWith(wanted)).length;
    }, prefix);
  }

  /** What the comparison shows of each task. */
  comparison() {
    return this.#page.evaluate(() =>
      [...document.querySelectorAll('.outcome')].map((outcome) => ({
        task: outcome.dataset.task,
        equal: outcome.querySelector('.equal')?.innerText.trim(),
        cells: Object.fromEntries(
          [...outcome.querySelectorAll('tbody tr')].map((row) => [
            row.dataset.system,
            { ms: Number(row.dataset.ms), text: row.lastElementChild.innerText },
          ]),
        ),
      })),
    );
  }

  /**
   * Makes a file missing on the server. The error that the page's console reports for it is
   * expected.
   */
  async without(file) {
    this.#missing = file;
    await this.#page.route(`**/${file}*`, (route) => route.fulfill({ status: 404 }));
  }

  /** Makes the browser one without an origin private file system. */
  async withoutFileSystem() {
    await this.#page.addInitScript(() => {
      Object.defineProperty(navigator.storage, 'getDirectory', { value: undefined });
    });
  }
}

/** Runs in the page: reads what it shows of the last run. */
function readAnswer() {
  const results = document.querySelector('.results');
  const value = (name) =>
    Number(results.querySelector(`[data-figure=${name}]`)?.dataset.value ?? NaN);
  const rows = [...results.querySelectorAll('tbody tr:not(.spacer)')];
  return {
    headline: results.querySelector('h2')?.textContent,
    kind: results.querySelector('.failure-kind')?.textContent,
    marked: document.querySelector('.cm-error-word')?.textContent,
    steps: results.querySelectorAll('.step').length,
    rows: rows.length,
    text: rows
      .map((row) =>
        [...row.querySelectorAll('td:not([aria-hidden])')]
          .map((cell) => cell.textContent)
          .join('\t'),
      )
      .join('\n'),
    elapsedMs: value('elapsedMs'),
    roundTripMs: value('roundTripMs'),
    rowsRead: value('rowsRead'),
    bytesRead: value('bytesRead'),
    segmentsRead: value('segmentsRead'),
    segmentsSkipped: value('segmentsSkipped'),
  };
}
