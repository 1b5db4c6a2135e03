/**
 * The examples of the documentation run, in Node and in the browser, and print what their comments
 * say.
 */

import { afterAll, describe, expect, test } from 'vitest';
import list from './generated';
import { show } from './show';

type RunExample = (console: { log: (...values: unknown[]) => void }) => Promise<void>;

const modules = import.meta.glob<{ default: RunExample }>('./generated/example-*.ts');
const here = typeof document === 'undefined' ? 'node' : 'browser';
const cleanUp: (() => void)[] = [];

/**
 * In Node, examples with a path run in an empty folder, but for the table that the top README
 * reads.
 */
async function inEmptyFolder(): Promise<void> {
  const [fs, os, path] = await Promise.all([
    import('node:fs'),
    import('node:os'),
    import('node:path'),
  ]);
  const [before, folder] = [process.cwd(), fs.mkdtempSync(path.join(os.tmpdir(), 'nacre-docs-'))];
  process.chdir(folder);
  cleanUp.push(() => {
    process.chdir(before);
    fs.rmSync(folder, { recursive: true, force: true });
  });
  const { connect } = await import('nacredb');
  const shop = await connect('./shop');
  await shop.exec('create table nation (n_nationkey int primary key, n_name text)');
  await shop.exec("insert into nation values (6, 'FRANCE'), (7, 'GERMANY')");
  await shop.close();
}

afterAll(() => cleanUp.forEach((each) => each()));

describe('the example at', async () => {
  if (here === 'node') {
    await inEmptyFolder();
  }
  const ours = list.filter(({ runtime }) => runtime === 'everywhere' || runtime === here);
  test.each(ours)('$source', async ({ name, printed }) => {
    const { default: run } = await modules[`./generated/${name}.ts`]!();
    const lines: string[] = [];
    await run({ log: (...values) => void lines.push(values.map(show).join(' ')) });
    expect(lines).toEqual(printed);
  });
});
