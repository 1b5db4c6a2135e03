/** The newest measurement of each station, from a public bucket, in the edge runtime. */

import { connect } from 'nacredb';

export const runtime = 'edge';

const NEWEST = `
  select station, at, degrees from measurement m
  where at = (select max(at) from measurement where station = m.station) order by station`;

export async function GET() {
  const { BLOBS: url, ENDPOINT: endpoint } = process.env;
  const db = await connect({ blobs: { url, endpoint }, readOnly: true, types: { date: 'string' } });
  try {
    const { rows } = await db.query(NEWEST);
    return Response.json(rows);
  } finally {
    await db.close();
  }
}
