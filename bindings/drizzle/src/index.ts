/** Drizzle ORM on a Nacre database: `drizzle(await connect(url), { schema })`. */

export { drizzle, type DrizzleDatabase } from './driver.js';
export { applyMigrations, type MigrationConfig, type MigrationFile } from './migrations.js';
export { NacreSession, NacreTransaction, type NacreQueryResultHKT } from './session.js';
