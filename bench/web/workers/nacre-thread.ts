/** Nacre in a worker's own thread. */

import { connectInThread } from 'nacredb';

import type { Value } from '../system';
import { serve } from './thread';

serve(async () => {
  const db = await connectInThread('opfs://bench-thread', { types: { bigint: 'number' } });
  return {
    exec: (sql) => db.exec(sql),
    load: (table, columns) => db.insertRows(table, columns),
    prepare(sql) {
      const statement = db.prepareSync(sql);
      return (parameters) => {
        const result = statement.runSync(parameters);
        return Array.from({ length: result.rowCount }, (_, row) => result.values(row) as Value[]);
      };
    },
  };
});
