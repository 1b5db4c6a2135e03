//! Bytes: the codecs of keys, rows and types, and the hashes of stored bytes.

pub mod bytes;
pub mod checksum;
pub mod hash;
pub mod key;
pub mod row;
pub mod type_code;
