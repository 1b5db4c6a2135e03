import { eq } from 'drizzle-orm';
import type { QueryResult } from 'nacredb';
import { drizzle } from 'nacredb-drizzle';
import { expect, expectTypeOf, test } from 'vitest';
import { author, book } from './schema.js';
import { withBooks } from './testing.js';

test('rows, results and relations have the types of the schema', async () => {
  const db = await withBooks();
  const rows = await db
    .select({ title: book.title, price: book.price, sold: book.sold, writer: author.name })
    .from(book)
    .leftJoin(author, eq(author.id, book.author))
    .orderBy(book.id);
  expectTypeOf(rows).toEqualTypeOf<
    { title: string; price: string | null; sold: bigint; writer: string | null }[]
  >();
  expect(rows[2]).toEqual({ title: 'Shells', price: '3.00', sold: 0n, writer: 'Bob' });

  const updated = await db.update(book).set({ rating: 1 });
  expectTypeOf(updated).toEqualTypeOf<QueryResult<never>>();
  expect(updated.rowsAffected).toBe(3);

  const first = await db.query.book.findFirst({
    columns: { id: true },
    with: { author: { columns: { born: true } } },
  });
  expectTypeOf(first).toEqualTypeOf<{ id: number; author: { born: Date | null } } | undefined>();
  expect(first?.author).toBeDefined();

  // @ts-expect-error A title is a text.
  await expect(db.insert(book).values({ author: 1, title: 7n })).resolves.toBeDefined();
  // @ts-expect-error The database is not a URL.
  expect(() => drizzle('memory://')).not.toThrow();
});
