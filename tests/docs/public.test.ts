/**
 * Every public declaration of the package is documented, and everything that can be called has an
 * example.
 */

import * as path from 'node:path';
import { expect, test } from 'vitest';
import { declarations, declarationsOf } from './public';

const all = declarations(path.resolve(import.meta.dirname, '../..'));

test('every public declaration has a doc comment', () => {
  expect(all.length).toBeGreaterThan(100);
  expect(all.filter(({ comment }) => comment === '').map(({ name }) => name)).toEqual([]);
});

test('every public function and method has an example', () => {
  const callable = all.filter((each) => each.callable);
  expect(callable.length).toBeGreaterThan(25);
  expect(
    callable.filter(({ comment }) => !comment.includes('```ts')).map(({ name }) => name),
  ).toEqual([]);
});

test('members are found, and only public ones', () => {
  const source = [
    '/** A. */',
    'export class Thing<R> extends Base {',
    '  /** B. */',
    '  readonly size: number;',
    '  #hidden = 1;',
    '  /** @internal */',
    '  constructor(size: number) {',
    '    this.size = size;',
    '  }',
    '  async *rows(): AsyncGenerator<R> {',
    '  }',
    '  protected check(): void {',
    '  }',
    '}',
  ];
  expect(declarationsOf(source, 'Thing')).toEqual([
    { name: 'Thing', comment: '/** A. */', callable: false },
    { name: 'Thing.size', comment: '  /** B. */', callable: false },
    { name: 'Thing.rows', comment: '', callable: true },
  ]);
});
