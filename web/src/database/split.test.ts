// A script is split into its statements, and never inside one.

import { describe, expect, test } from 'vitest';

import { split } from './split';

const texts = (script: string) => split(script).map(({ text }) => text);

describe('split', () => {
  test('statements have no semicolons, and know their positions', () => {
    expect(split('begin;\n  select 1 ;')).toEqual([
      { text: 'begin', from: 0 },
      { text: 'select 1', from: 9 },
    ]);
  });

  test('a semicolon in quotes or in a comment, nested or not, ends no statement', () => {
    const script = `select ';', "a;b", \`c;d\` -- one; two\n, 'it''s;' /* x; /* y; */ z; */ from t`;
    expect(texts(script)).toEqual([script]);
  });

  test("a backslash escapes a quote in E'…', and nowhere else", () => {
    expect(texts("select E'it\\'s; x', e'\\\\'; select 2")).toEqual([
      "select E'it\\'s; x', e'\\\\'",
      'select 2',
    ]);
    expect(texts("select '\\'; select name'\\'; select 3")).toEqual([
      "select '\\'",
      "select name'\\'",
      'select 3',
    ]);
    expect(texts("select E'a''; b'; select E'c; \\")).toEqual([
      "select E'a''; b'",
      "select E'c; \\",
    ]);
  });

  test('comments before a statement are not part of it, and comments alone are no statement', () => {
    expect(split('-- first\nselect 1; -- last\n/* end */')).toEqual([
      { text: 'select 1', from: 9 },
    ]);
    expect(texts(' ;; \n')).toEqual([]);
  });

  test('an unclosed string or comment extends to the end', () => {
    expect(texts("select 'a; b")).toEqual(["select 'a; b"]);
    expect(texts('select 1 /* a; b')).toEqual(['select 1 /* a; b']);
  });
});
