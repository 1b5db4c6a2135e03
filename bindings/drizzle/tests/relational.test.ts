import { desc, eq, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { book } from './schema.js';
import { withBooks } from './testing.js';

test('finds rows with the rows of their relations, some levels deep', async () => {
  const db = await withBooks();
  const authors = await db.query.author.findMany({
    columns: { name: true, settings: true },
    with: {
      editor: { columns: { name: true, born: true, joined: true, active: true } },
      books: {
        columns: { author: false },
        orderBy: desc(book.id),
        with: { genres: { columns: {}, with: { genre: true } } },
      },
    },
    orderBy: (author, { asc }) => asc(author.id),
  });
  expect(authors).toEqual([
    {
      name: 'Ada',
      settings: { dark: true },
      editor: null,
      books: [
        {
          id: 11,
          title: 'Bernoulli',
          price: null,
          sold: 0n,
          rating: 4.5,
          opens: '08:30:00',
          cover: null,
          genres: [],
        },
        {
          id: 10,
          title: 'Notes "A"\n\\100 % é',
          price: '10.50',
          sold: 9007199254740993n,
          rating: null,
          opens: null,
          cover: null,
          genres: [{ genre: { id: 1, label: 'maths' } }],
        },
      ],
    },
    {
      name: 'Bob',
      settings: [1, '2'],
      editor: {
        name: 'Ada',
        born: new Date('1815-12-10'),
        joined: expect.any(Date),
        active: true,
      },
      books: [
        {
          id: 12,
          title: 'Shells',
          price: '3.00',
          sold: 0n,
          rating: null,
          opens: null,
          cover: Uint8Array.of(0, 255),
          genres: [{ genre: { id: 1, label: 'maths' } }, { genre: { id: 2, label: 'sea' } }],
        },
      ],
    },
  ]);
});

test('filters, limits and computes in relations', async () => {
  const db = await withBooks();
  const ada = await db.query.author.findFirst({
    where: (author, { eq }) => eq(author.name, 'Ada'),
    columns: { id: true },
    with: {
      books: {
        columns: { title: true },
        where: (book, { isNotNull }) => isNotNull(book.rating),
        extras: { upper: sql<string>`upper(${book.title})`.as('upper') },
        limit: 1,
      },
    },
  });
  expect(ada).toEqual({ id: 1, books: [{ title: 'Bernoulli', upper: 'BERNOULLI' }] });
  const second = await db.query.book.findMany({
    columns: { id: true },
    with: { author: { columns: { settings: true, email: true } } },
    limit: 1,
    offset: 2,
    orderBy: book.id,
  });
  expect(second).toEqual([{ id: 12, author: { settings: [1, '2'], email: null } }]);
  expect(await db.query.book.findFirst({ where: eq(book.id, 99) })).toBeUndefined();
});

test('prepared relational queries', async () => {
  const db = await withBooks();
  const byId = db.query.author
    .findFirst({
      where: (author, { eq }) => eq(author.id, sql.placeholder('id')),
      with: { books: { columns: { id: true }, orderBy: (book, { asc }) => asc(book.id) } },
    })
    .prepare('by_id');
  expect((await byId.execute({ id: 1 }))?.books).toEqual([{ id: 10 }, { id: 11 }]);
  expect((await byId.execute({ id: 2 }))?.books).toEqual([{ id: 12 }]);
});
