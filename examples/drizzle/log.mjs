/** A log of runs: every runner's distance and pace, and each one's last runs. */

import * as path from 'node:path';
import { desc, eq, sql, sum } from 'drizzle-orm';
import { connect } from 'nacredb';
import { drizzle } from 'nacredb-drizzle';
import { migrate } from 'nacredb-drizzle/migrator';
import * as schema from './schema.mjs';

const { run, runner } = schema;

/** Opens the log that is kept in a folder, and brings its tables up to date. */
export async function openLog(folder) {
  const db = drizzle(await connect(folder), { schema });
  await migrate(db, { migrationsFolder: path.join(import.meta.dirname, 'migrations') });
  return new RunningLog(db);
}

class RunningLog {
  #db;

  constructor(db) {
    this.#db = db;
  }

  /** Records a run; a new name is a new runner. */
  async add(name, { day, km, minutes }) {
    await this.#db.transaction(async (tx) => {
      const [{ id }] = await tx
        .insert(runner)
        .values({ name })
        .onConflictDoUpdate({ target: runner.name, set: { name } })
        .returning({ id: runner.id });
      await tx.insert(run).values({ runner: id, day, km, minutes });
    });
  }

  /** The runners, farthest first, with their pace in minutes a kilometre. */
  async ranking() {
    const km = sum(run.km).mapWith(Number);
    return this.#db
      .select({
        name: runner.name,
        km,
        pace: sql`round(sum(${run.minutes}) / sum(${run.km}), 2)`.mapWith(Number),
      })
      .from(runner)
      .innerJoin(run, eq(run.runner, runner.id))
      .groupBy(runner.id, runner.name)
      .orderBy(desc(km));
  }

  /** Every runner with the last runs, newest first. */
  async last(limit) {
    return this.#db.query.runner.findMany({
      columns: { name: true },
      with: { runs: { columns: { day: true, km: true }, orderBy: desc(run.day), limit } },
      orderBy: runner.name,
    });
  }

  close() {
    return this.#db.$client.close();
  }
}
