//! Sessions as users see them: statements, transactions, errors, limits, files that are damaged or far away. One
//! program, because linking the engine takes longer than compiling a file of tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod absent;
mod admission;
mod alter;
mod alter_in_transactions;
mod bad_input;
mod bulk;
mod change_feed;
mod create_as;
mod ddl_in_transactions;
mod delete_many;
mod described;
mod durability;
mod errors;
mod foreign_keys;
mod functions;
mod index;
mod index_beside_writers;
mod index_order;
mod index_subset;
mod insert_many;
mod isolation;
mod join_index;
mod joins;
mod json_paths;
mod lists;
mod load_slices;
mod locks;
mod memory;
mod memory_budget;
mod merge;
mod open_files;
mod optimize;
mod ordered;
mod path_index;
mod point;
mod point_index;
mod profile;
mod random_indexes;
mod read_only;
mod rules;
mod snapshot_names;
mod statement_cache;
mod stream;
mod temporary_tables;
mod threads;
mod tiers;
mod tiers_ahead;
mod tiers_follow;
mod tiers_past;
mod tiers_warm;
mod transactions;
mod update_many;
mod upsert;
