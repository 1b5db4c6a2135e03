/** A reading list: books and when they were read. */

import knex from 'knex';
import { connect } from 'nacredb';
import { nacreClient } from './nacre-client.mjs';

const migrations = {
  '001-books': {
    async up(db) {
      await db.schema.createTable('book', (table) => {
        table.increments('id');
        table.string('title', 200).notNullable().unique();
        table.string('author', 100).notNullable().index();
        table.timestamp('added').notNullable().defaultTo(db.fn.now());
      });
    },
    async down(db) {
      await db.schema.dropTable('book');
    },
  },
  '002-reading': {
    async up(db) {
      await db.schema.createTable('reading', (table) => {
        table.bigIncrements('id');
        table.integer('book').notNullable().index();
        table.date('day').notNullable();
        table.integer('stars');
      });
    },
    async down(db) {
      await db.schema.dropTable('reading');
    },
  },
};

/** What Knex asks for the migrations. */
const migrationSource = {
  getMigrations: async () => Object.keys(migrations).sort(),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
};

/** Opens the list that is kept in a folder, and brings its tables up to date. */
export async function openBooks(folder) {
  const database = await connect(folder, { types: { bigint: 'number' } });
  const db = knex({ client: nacreClient(database), connection: {} });
  await db.migrate.latest({ migrationSource });
  return new Books(database, db);
}

class Books {
  #database;
  #db;

  constructor(database, db) {
    this.#database = database;
    this.#db = db;
  }

  /** Adds a book, or corrects the author of one that is there, and answers its number. */
  async add(title, author) {
    const [{ id }] = await this.#db('book')
      .insert({ title, author })
      .onConflict('title')
      .merge(['author'])
      .returning('id');
    return id;
  }

  /** Records that a book was read. */
  async read(title, day, stars) {
    await this.#db.transaction(async (tx) => {
      const book = await tx('book').where({ title }).first('id');
      if (book === undefined) {
        throw new Error(`there is no book ${title}`);
      }
      await tx('reading').insert({ book: book.id, day, stars });
    });
  }

  /** Authors by how often they were read, with the mean of their stars. */
  async authors() {
    return this.#db('book')
      .leftJoin('reading', 'reading.book', 'book.id')
      .groupBy('author')
      .orderBy('readings', 'desc')
      .orderBy('author')
      .select('author')
      .count('reading.id as readings')
      .select(this.#db.raw('round(avg(stars), 1) as stars'));
  }

  async close() {
    await this.#db.destroy();
    await this.#database.close();
  }
}
