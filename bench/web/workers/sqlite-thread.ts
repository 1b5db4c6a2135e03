/** SQLite, tuned, in a worker's own thread. */

import { insertColumns, openDatabase, rowsOf } from './sqlite-engine';
import { serve } from './thread';

serve(async () => {
  const db = await openDatabase('bench-sqlite-thread', true);
  return {
    exec: (sql) => db.exec(sql),
    load(table, columns) {
      db.exec('begin');
      insertColumns(db, table, Object.values(columns));
      db.exec('commit');
    },
    prepare(sql) {
      const statement = db.prepare(sql);
      return (parameters) => rowsOf(statement, parameters);
    },
  };
});
