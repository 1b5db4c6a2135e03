// A worker thread that has the database. It answers the calls of the main thread one by one.

import { parentPort, workerData } from 'node:worker_threads';
import { connect } from 'nacredb';

const db = await connect(workerData.folder);

const methods = {
  exec: (sql) => db.exec(sql),
  query: async (sql, parameters) => (await db.query(sql, parameters)).rows,
  insertRows: (table, rows, options) => db.insertRows(table, rows, options),
  close: () => db.close(),
};

parentPort.on('message', async ({ id, method, args }) => {
  try {
    parentPort.postMessage({ id, result: await methods[method](...args) });
  } catch (error) {
    // A copied error keeps its message only, so the kind travels beside it.
    parentPort.postMessage({ id, error: { kind: error.kind ?? 'io', message: error.message } });
  }
  if (method === 'close') {
    parentPort.close();
  }
});
