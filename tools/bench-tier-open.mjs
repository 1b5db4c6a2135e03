/**
 * `npm run bench -- tier-open [--rows N] [--rounds N]`: opens a database in a bucket on an empty machine, behind
 * a link of 20 ms and 100 Mbit/s, and one of a tenth of its rows of 2 kB. The bucket needs about the bytes of the
 * database on this disk, and a gigabyte more. The workload is `bench/compare/src/tier_open.rs`.
 */

import { Failure, root, run } from './lib.mjs';
import { startLink } from './link.mjs';
import { startGateway } from './versitygw.mjs';

const BUCKET = 'bench';

export async function bench(args) {
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
    const env = {
      AWS_ACCESS_KEY_ID: gateway.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: gateway.credentials.secretAccessKey,
      NACRE_BENCH_BUCKET: BUCKET,
      NACRE_BENCH_DIRECT: gateway.endpoint,
      NACRE_BENCH_LINK: link.endpoint,
    };
    const workload = ['nacre-bench-compare', '--features', 'bundled', '--', 'tier-open', ...args];
    await run('cargo', ['run', '-q', '--release', '-p', ...workload], { cwd: root, env });
  } finally {
    await link.stop();
    await gateway.stop();
  }
}
