"""DataFusion over a Parquet file in the bucket, as a peer of the workload `tier`.

Reads lines from standard input and answers one each: `open` makes a new context, with nothing of the
file in memory; any other line is SQL. An answer is the milliseconds, a tab, and the rows as text,
separated by 0x1e, their values by 0x1f."""

import os
import sys
import time

import datafusion
from datafusion.object_store import AmazonS3


def opened():
    context = datafusion.SessionContext()
    bucket = os.environ["NACRE_BENCH_BUCKET"]
    store = AmazonS3(
        bucket_name=bucket,
        region="us-east-1",
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint=os.environ["NACRE_BENCH_LINK"],
        allow_http=True,
    )
    context.register_object_store("s3://", store, bucket)
    context.register_parquet("customer", f"s3://{bucket}/parquet/customer.parquet")
    return context


context = None
for line in sys.stdin:
    started = time.perf_counter()
    batches = []
    if line.strip() == "open":
        context = opened()
    else:
        batches = context.sql(line).collect()
    ms = (time.perf_counter() - started) * 1e3
    rows = [map(str, row.values()) for batch in batches for row in batch.to_pylist()]
    print(ms, "\x1e".join("\x1f".join(row) for row in rows), sep="\t", flush=True)
