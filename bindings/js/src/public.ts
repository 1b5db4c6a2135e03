/** The package's public names, except `connect`, which differs between browsers and Node. */

export { NacreError, type ErrorKind, type Position } from '../../../worker/shared/errors.js';
export type {
  BlobCredentials,
  BlobOptions,
  BlobRequest,
  BlobsOptions,
} from '../../../worker/shared/blobs/options.js';
export type { Statistics, LagReport, StorageReport } from '../../../worker/shared/wire.js';
export type { Changes, LiveChanges } from './changes.js';
export { type Database } from './database.js';
export type { ColumnReport, SegmentReport, TableReport } from '../../../worker/shared/inspect.js';
export type {
  AggregateFunction,
  AggregateOptions,
  FunctionOptions,
  ModuleExport,
} from './functions.js';
export type { ArrowSource } from './insert-arrow.js';
export type { Columns, NumberArray, Rows } from './insert-rows.js';
export type { Live, LiveCallback, LiveOptions, LiveSubscription } from './live.js';
export type { InsertOptions } from './load.js';
export type { CallOptions, ConnectOptions, StatementOptions } from './options.js';
export { type QueryResult } from './result.js';
export { type ResultColumn } from './shape.js';
export type { NewRow, RowIn, RowOf, TableName } from './schema.js';
export { sql, type SqlQuery } from './sql.js';
export { type PreparedStatement } from './statement.js';
export { type ResultStream } from './stream.js';
export { type ThreadDatabase, type ThreadStatement } from './thread-database.js';
export { type Transaction } from './transaction.js';
export type { Parameter, Parameters, Row, TypeOptions } from './types.js';
export type { WaitOptions } from './wait-for-position.js';
