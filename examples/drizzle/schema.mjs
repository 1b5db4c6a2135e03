/** The tables of the running log. `npm run generate` makes migrations of their changes. */

import { relations } from 'drizzle-orm';
import {
  date,
  doublePrecision,
  index,
  integer,
  pgTable,
  serial,
  varchar,
} from 'drizzle-orm/pg-core';

export const runner = pgTable('runner', {
  id: serial().primaryKey(),
  name: varchar({ length: 60 }).notNull().unique(),
});

export const run = pgTable(
  'run',
  {
    id: serial().primaryKey(),
    runner: integer().notNull(),
    day: date().notNull(),
    km: doublePrecision().notNull(),
    minutes: integer().notNull(),
  },
  (table) => [index('run_runner').on(table.runner, table.day)],
);

export const runnerRelations = relations(runner, ({ many }) => ({ runs: many(run) }));
export const runRelations = relations(run, ({ one }) => ({
  by: one(runner, { fields: [run.runner], references: [runner.id] }),
}));
