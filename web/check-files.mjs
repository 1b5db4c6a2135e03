/** Steps of `check.mjs` for files that become tables. */

import * as path from 'node:path';
import { Table, tableFromArrays, tableToIPC, vectorFromArray, Utf8 } from 'apache-arrow';
import { root } from '../tools/lib.mjs';
import { count, expect, report } from './check-lib.mjs';

const ROWS = 60_000;

export async function files(page) {
  await csv(page);
  await ndjson(page);
  await arrow(page);
  await parquet(page);
  await broken(page);
}

async function csv(page) {
  const lines = ['id,Day,price,name,paid'];
  for (let i = 0; i < ROWS; i += 1) {
    const day = new Date(Date.UTC(2024, 0, 1 + (i % 366))).toISOString().slice(0, 10);
    lines.push(`${i},${day},${(i / 100).toFixed(2)},"shell ""${i % 7}"", pearl",${i % 2 === 0}`);
  }
  const file = {
    name: 'My sales.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(lines.join('\n')),
  };
  const started = Date.now();
  const shown = await page.openFile(file);
  expect('the import of CSV', shown.failure, undefined);
  const ms = Date.now() - started;
  expect('rows of the CSV file', await page.number('select count(*) from my_sales'), ROWS);
  const types = await page.columnTypes();
  expect('types of the CSV file', types, (text) =>
    /^id bigint, day date, price decimal\(5,\s?2\), name text, paid boolean$/i.test(text),
  );
  expect('a sum', await page.one('select sum(price) from my_sales where paid'), '8999700.00');
  expect(
    'a text with quotes',
    await page.one('select name from my_sales where id = 8'),
    'shell "1", pearl',
  );
  report('file: CSV', `${count(ROWS)} rows in ${count(ms)} ms`, types);
}

async function ndjson(page) {
  const rows = Array.from({ length: 1000 }, (_, i) => ({
    id: i,
    at: new Date(Date.UTC(2024, 0, 1, 0, i)).toISOString(),
    tags: [`t${i % 3}`],
    ...(i % 2 === 0 ? { score: i / 4 } : {}),
  }));
  const buffer = Buffer.from(`${rows.map((row) => JSON.stringify(row)).join('\n')}\n`);
  const shown = await page.dropFile({ name: 'events.ndjson', buffer });
  expect('the import of NDJSON', shown.failure, undefined);
  const types = await page.columnTypes();
  expect('types of the NDJSON file', types, (text) =>
    /^id bigint, at timestamp, tags json, score double$/i.test(text),
  );
  expect(
    'missing values',
    await page.number('select count(*) from events where score is null'),
    500,
  );
  expect(
    'a time',
    await page.one("select count(*) from events where at >= '2024-01-01 16:00:00'"),
    '40',
  );
  report('file: NDJSON', '1,000 rows, dropped', types);
}

async function arrow(page) {
  const table = tableFromArrays({
    id: Int32Array.from({ length: 5000 }, (_, i) => i),
    value: Float64Array.from({ length: 5000 }, (_, i) => i / 2),
    big: BigInt64Array.from({ length: 5000 }, (_, i) => BigInt(i) * 10_000_000_000n),
  });
  const name = vectorFromArray(
    Array.from({ length: 5000 }, (_, i) => (i % 5 === 0 ? null : `n${i % 11}`)),
    new Utf8(),
  );
  const whole = new Table({
    ...Object.fromEntries(table.schema.names.map((n) => [n, table.getChild(n)])),
    name,
  });
  for (const [file, format] of [
    ['shells.arrow', 'file'],
    ['shells.arrows', 'stream'],
  ]) {
    const shown = await page.openFile({
      name: file,
      mimeType: 'application/vnd.apache.arrow.file',
      buffer: Buffer.from(tableToIPC(whole, format)),
    });
    expect(`the import of ${file}`, shown.failure, undefined);
  }
  expect('the sum of both', await page.one('select sum(value) from shells'), '6248750');
  expect('nulls', await page.number('select count(*) from shells_2 where name is null'), 1000);
  expect('a large number', await page.one('select max(big) from shells_2'), '49990000000000');
  report('file: Arrow', '5,000 rows as a file and as a stream', await page.columnTypes());
}

async function parquet(page) {
  for (const codec of ['snappy', 'zstd', 'gzip']) {
    const shown = await page.openFile(path.join(root, `web/fixtures/trips-${codec}.parquet`));
    expect(`the import of Parquet with ${codec}`, shown.failure, undefined);
    const table = `trips_${codec}`;
    expect('rows of the Parquet file', await page.number(`select count(*) from ${table}`), 3000);
    expect('the last day', await page.one(`select max(day) from ${table}`), '2020-04-09');
    expect('a decimal', await page.one(`select sum(fare) from ${table}`), '374625.00');
    expect('nulls', await page.number(`select count(*) from ${table} where name is null`), 300);
    expect(
      'a time',
      await page.number(`select count(*) from ${table} where at < '2020-01-01 00:01:00'`),
      60,
    );
    expect('a list', await page.one(`select stops from ${table} where id = 8`), '[1,2]');
  }
  const types = await page.columnTypes();
  expect('types of the Parquet file', types, (text) =>
    /^id int, day date, at timestamp, fare decimal\(9,\s?2\), name text, stops json$/i.test(text),
  );
  report('file: Parquet', '3,000 rows, snappy, zstd and gzip', types);
}

async function broken(page) {
  const cases = [
    ['broken.csv', 'a,b\n1,2\n3\n', /^csv\s+line 3/],
    ['broken.ndjson', '{"a":1}\n{"a":\n', /^json\s+line 2/],
    ['broken.parquet', 'PAR1 and nothing else', /^parquet/],
    ['broken.arrow', 'ARROW1\0\0 and nothing else', /^arrow/],
    ['empty.csv', '', /^empty/],
    ['latin.csv', Buffer.from([0x61, 0x0a, 0xe9, 0x0a]), /^encoding/],
    ['photo.png', 'PNG', /^unsupported/],
  ];
  const before = await page.tables();
  for (const [name, content, pattern] of cases) {
    const { failure } = await page.openFile({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(content),
    });
    expect(`the failure of ${name}`, failure ?? '', (text) => pattern.test(text));
  }
  expect('tables afterwards', await page.tables(), before);
  report('file: mistakes', `${cases.length} broken files: typed errors, no table is left`);
}
