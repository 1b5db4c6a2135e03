//! Blob stores on an operating system: S3 and what speaks its protocol, Google Cloud Storage, Azure
//! Blob Storage, and folders.
//!
//! The engine polls answers on its own threads; the network is served by two threads of this crate. The
//! protocols are those of the crate `object_store`; this crate connects, decides what is repeated, and
//! says what a failure means. A failed write never pretends to have had no effect: `attempts` and `write`
//! hold the reasoning. With a key of the application, blobs are encrypted here (`seal`).
//! Nothing here knows what blobs contain.

mod attempts;
mod bucket;
mod connection;
mod credentials;
mod failure;
mod folder;
mod open;
mod options;
mod presign;
mod read;
mod remote;
mod runtime;
mod seal;
mod seen;
mod store;
mod tls;
mod write;

pub use credentials::{Credential, CredentialSource, Credentials, Issued};
pub use folder::FolderBlobs;
pub use open::open_blobs;
pub use options::{BlobOptions, Encryption};
pub use presign::{UnsignedRequest, UrlSigner};
pub use seal::EncryptionKey;
