"""Makes a file of DuckDB's, of the version of DuckDB-Wasm, from orders and line items in Parquet.

Arguments: the folder of the Parquet files, and the file to make."""

import sys

import duckdb

folder, file = sys.argv[1:]
connection = duckdb.connect(file)
connection.execute(f"create table orders as select * from '{folder}/orders.parquet'")
connection.execute("alter table orders add primary key (o_orderkey)")
connection.execute(f"create table lineitem as select * from '{folder}/lineitem.parquet'")
connection.execute("checkpoint")
connection.close()
