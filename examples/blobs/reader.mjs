// Shows the weather as the bucket has it, from any machine, and never writes: `node reader.mjs [UNTIL]` ends once
// that number of measurements is there.

import { connect } from 'nacredb';
import { access, url } from './store.mjs';

const until = Number(process.argv[2] ?? Infinity);

/** Opens the database, as soon as there is one. */
async function opened() {
  for (;;) {
    try {
      return await connect(url, { blobs: access, follow: 200 });
    } catch (error) {
      if (error.kind !== 'not_found') {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

const db = await opened();
await new Promise((resolve, reject) => {
  const report = async ({ rows }) => {
    const { uploadedAt } = await db.lag();
    const seconds = ((Date.now() - uploadedAt.getTime()) / 1000).toFixed(1);
    console.log(`as of ${seconds} s ago:`);
    rows.forEach(({ station, n, warmest }) =>
      console.log(`  ${station}: ${n}, at most ${warmest}`),
    );
    if (rows.reduce((sum, { n }) => sum + Number(n), 0) >= until) {
      resolve();
    }
  };
  const sql = `select station, count(*) as n, round(max(degrees), 1) as warmest
    from measurement group by station order by station`;
  // Called again whenever the writer has uploaded more.
  db.live.query(sql, [], (result) => report(result).catch(reject)).catch(reject);
});
await db.close();
