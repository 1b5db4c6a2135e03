/** Steps of `check.mjs` for plans, charts, the writer, and the scale of the data. */

import * as fs from 'node:fs';
import * as path from 'node:path';
import { count, expect, report, RESULTS } from './check-lib.mjs';

const PAINT_MS = 1000;
const LONG_MS = 300_000;

async function picture(page, name) {
  fs.mkdirSync(RESULTS, { recursive: true });
  await page.screenshot(path.join(RESULTS, `${name}.png`));
}

/** The first paint, and the first aggregate beside a warm one. */
export async function startUp(page) {
  await page.reload();
  await page.waitFor('.console', LONG_MS);
  const paint = await page.firstPaint();
  expect('milliseconds to the first paint', paint, (ms) => ms < PAINT_MS);
  const first = (await page.take('aggregate')).elapsedMs;
  const warm = [];
  for (let i = 0; i < 5; i += 1) {
    warm.push((await page.take('aggregate')).elapsedMs);
  }
  const median = warm.sort((a, b) => a - b)[2];
  report(
    'start',
    `first paint ${paint.toFixed(0)} ms `,
    `first aggregate ${first.toFixed(1)} ms, warm ${median.toFixed(1)} ms, ${(first / median).toFixed(1)}×`,
  );
}

export async function plan(page) {
  await page.take('profile');
  const operators = await page.texts('.operator strong');
  for (const wanted of ['Scan', 'InnerJoin', 'Aggregate', 'Sort']) {
    expect('operators of the plan', operators, (all) => all.includes(wanted));
  }
  const times = await page.texts('.operator-time span');
  expect('times of the operators', times, (all) => all.every((text) => /\d/.test(text)));
  await picture(page, 'demo-plan');
  await page.view('Table');
  expect('operators as a table', await page.count('.table-frame tbody tr'), operators.length);
  await page.view('Plan');
  await page.profile('update region set r_comment = r_comment where r_regionkey = 1');
  expect('the plan of an update', await page.texts('.operator strong'), (all) =>
    all.includes('Update'),
  );
  report(
    'profile',
    `${operators.length} operators with times: ${[...new Set(operators)].join(', ')}`,
  );
}

export async function charts(page) {
  await page.take('months');
  await page.view('Chart');
  expect('a line', await page.count('.chart-line'), 1);
  await picture(page, 'demo-line');
  await page.take('modes');
  expect('bars', await page.count('.chart-bars tbody tr'), 7);
  await picture(page, 'demo-bars');
  await page.run('select l_quantity, l_extendedprice from lineitem where l_orderkey < 800');
  expect('points', await page.count('.chart-point'), (points) => points > 500);
  await page.run('select 1');
  expect('a choice for one number', await page.count('.results .choice'), 0);
  await page.take('modes');
  await page.view('Table');
  report('charts', 'a line over months, bars by name, points of two numbers, none for one value');
}

export async function counters(page) {
  const commits = async () => Number(await page.textOf('[data-counter=commits] dd'));
  const before = await commits();
  await page.run('update region set r_comment = r_comment where r_regionkey = 2');
  await page.run(
    'begin; update region set r_comment = r_comment where r_regionkey = 2; update region set r_comment = r_comment where r_regionkey = 3; commit',
  );
  await page.run('begin; delete from region; rollback');
  await page.waitForText('[data-counter=commits] dd', new RegExp(`^${before + 2}$`));
  const shown = await page.texts('.counters div');
  expect('counters', shown.length, 5);
  const hits = await page.textOf('[data-counter=hits] dd');
  expect('cache hits', Number(hits.replaceAll(',', '')), (hits) => hits > 0);
  report('counters', ...shown.map((text) => text.replace(/\s*\n\s*/g, ' ')));
}

/** Layers while transactions are written and a query runs beside them. */
export async function writer(page) {
  await page.click('.writer button');
  await page.waitForText('.section h3', /^sensor$/);
  await page.waitForText('.writer', /live query: [1-9]/);
  const before = await page.number('select count(*) from sensor');
  await page.wait(3000);
  const after = await page.number('select count(*) from sensor');
  expect('rows that were written meanwhile', after - before, (rows) => rows > 0);
  await page.waitFor('.section[data-table=sensor] .stack', LONG_MS);
  await page.waitForText('.writer', /live query: [\d,]+ rows, mean \d/);
  await picture(page, 'demo-writer');
  const line = (await page.textOf('.writer p')).replace(/\s*\n\s*/g, ', ');
  await page.click('.writer button');
  await page.waitFor('.writer[data-state=stopped]');
  await page.run('drop table sensor');
  report('writer', line, `${count(after - before)} rows between two queries beside it`);
}

/** A second tab, which takes over when the first one goes. */
export async function tabs(page) {
  const other = await page.opens('.tabs[data-leads=true] button');
  await other.waitFor('.tabs[data-leads=false]', LONG_MS);
  await other.run("update region set r_comment = 'from the second tab' where r_regionkey = 4");
  expect(
    'the change of the second tab',
    await page.one('select r_comment from region where r_regionkey = 4'),
    'from the second tab',
  );
  await picture(other, 'demo-second-tab');
  await other.click('.tabs button');
  await other.waitFor('.tabs[data-leads=true]', LONG_MS);
  expect(
    'the change after the first tab went',
    await other.one('select r_comment from region where r_regionkey = 4'),
    'from the second tab',
  );
  const line = (await other.textOf('.tabs p')).replace(/\s*\n\s*/g, ' ');
  await page.waitFor('.tabs[data-leads=false]', LONG_MS);
  await other.close();
  await page.waitFor('.tabs[data-leads=true]', LONG_MS);
  report('tabs', line, 'the first tab comes back, follows, and leads again');
}

/** Another scale, stopped, which keeps the data. */
export async function scales(page) {
  const before = await page.number('select count(*) from lineitem');
  const tables = await page.tables();
  await page.chooseScale('0.1');
  await page.waitFor('.growth-row.done', LONG_MS);
  await picture(page, 'demo-loading');
  await page.click('.loading .button');
  await page.waitFor('.console', LONG_MS);
  expect(
    'rows after a load that was stopped',
    await page.number('select count(*) from lineitem'),
    before,
  );
  expect('tables after it', await page.tables(), tables);
  report('scale', '0.1 chosen and stopped: the data is as it was');
}
