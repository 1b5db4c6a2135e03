/**
 * `npm run bench -- tier [--rows N] [--rounds N]`: a database whose bytes are in a bucket behind a link
 * of 20 ms and 100 Mbit/s. Starts the S3 server (versitygw) and the link, makes the same rows as
 * Parquet for the peer, DataFusion, and runs the workload in `bench/compare/src/tier.rs`.
 */

import * as path from 'node:path';
import { python } from './bench-python.mjs';
import { Failure, root, run } from './lib.mjs';
import { startLink } from './link.mjs';
import { startGateway } from './versitygw.mjs';

const BUCKET = 'bench';
/** Customers of TPC-H at scale 1. */
const CUSTOMERS = 150_000;

export async function bench(args) {
  const at = args.indexOf('--rows');
  const rows = at === -1 ? 15_000_000 : Number(args[at + 1]);
  const { file, tpchgen } = await python();
  const gateway = await startGateway({ bucket: BUCKET });
  if (gateway === null) {
    throw new Failure('the workload needs the S3 server');
  }
  const link = await startLink({
    to: gateway.endpoint,
    roundTripMs: 20,
    bitsPerSecond: 100_000_000,
  });
  try {
    // The server's bucket is a folder.
    const parquet = path.join(gateway.folder, BUCKET, 'parquet');
    const scale = String(rows / CUSTOMERS);
    const generated = ['--tables', 'customer', '-c', 'ZSTD(1)', '--output-dir', parquet];
    await run(tpchgen, ['parquet', '--scale-factor', scale, ...generated], { quiet: true });
    const env = {
      AWS_ACCESS_KEY_ID: gateway.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: gateway.credentials.secretAccessKey,
      NACRE_BENCH_BUCKET: BUCKET,
      NACRE_BENCH_DIRECT: gateway.endpoint,
      NACRE_BENCH_LINK: link.endpoint,
      NACRE_BENCH_PYTHON: file,
    };
    const workload = ['nacre-bench-compare', '--features', 'bundled', '--', 'tier', ...args];
    await run('cargo', ['run', '-q', '--release', '-p', ...workload], { cwd: root, env });
  } finally {
    await link.stop();
    await gateway.stop();
  }
}
