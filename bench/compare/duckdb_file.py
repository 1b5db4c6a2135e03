"""Makes a file of DuckDB's, of the version of DuckDB-Wasm, from orders and line items in Parquet.

Without a primary key: its index of 18 million keys ends the page that opens the file by a URL. Orders are sorted, so that a
key is found by the bounds of row groups, as in Parquet.

Arguments: the folder of the Parquet files, and the file to make."""

import sys

import duckdb

folder, file = sys.argv[1:]
connection = duckdb.connect(file)
connection.execute(f"create table orders as select * from '{folder}/orders.parquet' order by o_orderkey")
connection.execute(f"create table lineitem as select * from '{folder}/lineitem.parquet'")
connection.execute("checkpoint")
connection.close()
