//! Tests of table storage as a whole.
