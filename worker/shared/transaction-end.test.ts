import { expect, test } from 'vitest';
import { endsTransaction } from './transaction-end.js';

test.each([
  'commit',
  ' END;',
  'abort',
  'Rollback Work',
  "insert into t values ('it''s; x');\n-- that is all\nCOMMIT",
  "select E'it\\'s'; /* ; */ rollback transaction; select 1",
])('%s ends a transaction', (sql) => {
  expect(endsTransaction(sql)).toBe(true);
});

test.each([
  'rollback to s',
  'rollback work to savepoint s',
  'select 1; rollback transaction to s',
  'select case when a then b end from t',
  "select '; commit', \"; commit\", `; commit`, E'\\'; commit' -- ; commit",
  "select 'x' /* y; commit */ from committed",
  'select commit from t',
])('%s does not', (sql) => {
  expect(endsTransaction(sql)).toBe(false);
});
