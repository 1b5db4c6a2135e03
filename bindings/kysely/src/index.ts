/** Kysely on a Nacre database: `new Kysely({ dialect: new NacreDialect({ database }) })`. */

export { NacreAdapter } from './adapter.js';
export { NacreQueryCompiler } from './compiler.js';
export { NacreDialect, type NacreDialectConfig } from './dialect.js';
export { NacreDriver } from './driver.js';
export { NacreIntrospector } from './introspector.js';
