//! Byte codecs of keys, rows and data types, and hashes of stored bytes.

pub mod bytes;
pub mod checksum;
pub mod hash;
pub mod key;
pub mod row;
pub mod type_code;
