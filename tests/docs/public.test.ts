/**
 * Every public declaration of the package is documented, and everything that can be called has an
 * example.
 */

import * as path from 'node:path';
import { expect, test } from 'vitest';
import { declaration } from '../../tools/docs/declarations.mjs';
import { everything, inSource } from './public';

const all = everything(path.resolve(import.meta.dirname, '../..'));

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
  expect(inSource(source.join('\n'), 'Thing')).toEqual([
    { name: 'Thing', comment: 'A.', callable: false },
    { name: 'Thing.size', comment: 'B.', callable: false },
    { name: 'Thing.rows', comment: '', callable: true },
  ]);
  const thing = declaration(source.join('\n'), 'Thing');
  expect(thing.members[1]?.signatures).toEqual(['rows(): AsyncGenerator<R>']);
});

test('overloads are one member, and functions of a function are members', () => {
  const source = [
    'export abstract class A {',
    '  /** Asks. */',
    '  ask(text: string): void;',
    '  ask(text: string, often?: number): void;',
    '  async ask(text: string, often = 1): Promise<void> {}',
    '}',
    '/** Makes. */',
    'export function make(): A { return f(); }',
    'export declare namespace make {',
    '  /** Joins. */',
    '  let join: (parts: A[]) => A;',
    '}',
    'make.join = (parts) => f(parts);',
  ].join('\n');
  const [ask] = declaration(source, 'A').members;
  expect(ask?.signatures).toEqual([
    'ask(text: string): void',
    'ask(text: string, often?: number): void',
  ]);
  expect(declaration(source, 'make')).toMatchObject({
    signatures: ['make(): A'],
    members: [{ name: 'join', comment: 'Joins.', signatures: ['make.join(parts: A[]): A'] }],
  });
});
