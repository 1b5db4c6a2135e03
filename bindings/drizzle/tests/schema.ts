/** The schema of the tests. drizzle-kit reads it too: it imports nothing but Drizzle. */

import { relations, sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  date,
  doublePrecision,
  index,
  integer,
  jsonb,
  numeric,
  pgTable,
  primaryKey,
  serial,
  text,
  time,
  timestamp,
  unique,
  varchar,
} from 'drizzle-orm/pg-core';

export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({
  dataType: () => 'bytea',
});

export const author = pgTable(
  'author',
  {
    id: serial('id').primaryKey(),
    name: varchar('name', { length: 60 }).notNull(),
    email: text('email').unique(),
    active: boolean('active').notNull().default(true),
    born: date('born', { mode: 'date' }),
    joined: timestamp('joined').notNull().defaultNow(),
    settings: jsonb('settings').$type<unknown>(),
    editor: integer('editor'),
  },
  (table) => [unique('author_name').on(table.name), check('author_id', sql`${table.id} > 0`)],
);

export const book = pgTable(
  'book',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity({ startWith: 10 }),
    author: integer('author_id').notNull(),
    title: text('title').notNull(),
    price: numeric('price', { precision: 8, scale: 2 }),
    sold: bigint('sold', { mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    rating: doublePrecision('rating'),
    opens: time('opens'),
    cover: bytes('cover'),
  },
  (table) => [index('book_author').on(table.author)],
);

export const genre = pgTable('genre', {
  id: serial('id').primaryKey(),
  label: text('label').notNull(),
});

export const bookGenre = pgTable(
  'book_genre',
  { book: integer('book').notNull(), genre: integer('genre').notNull() },
  (table) => [primaryKey({ columns: [table.book, table.genre] })],
);

export const authorRelations = relations(author, ({ many, one }) => ({
  books: many(book),
  editor: one(author, { fields: [author.editor], references: [author.id] }),
}));

export const bookRelations = relations(book, ({ many, one }) => ({
  author: one(author, { fields: [book.author], references: [author.id] }),
  genres: many(bookGenre),
}));

export const genreRelations = relations(genre, ({ many }) => ({ books: many(bookGenre) }));

export const bookGenreRelations = relations(bookGenre, ({ one }) => ({
  book: one(book, { fields: [bookGenre.book], references: [book.id] }),
  genre: one(genre, { fields: [bookGenre.genre], references: [genre.id] }),
}));
