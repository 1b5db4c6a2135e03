//! The format of encrypted blobs, which FORMAT.md describes. A blob is cut into blocks, each of which can
//! be read without the others: AES-256-GCM, with a key that is derived from the application's and the
//! name of the blob. So nothing that was exchanged, moved or shortened is taken for what was written.

use nacre_host::{Error, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::ops::Range;

/// An encrypted blob begins with these bytes, and the number of its key.
const MAGIC: [u8; 8] = *b"NACRESEA";
const HEAD_BYTES: usize = 16;
/// Bytes of a block; the last one may be shorter. The engine's cache asks for 4 KiB at least.
const BLOCK_BYTES: usize = 8 << 10;
const TAG_BYTES: usize = 16;
/// What a block takes beside its content.
const EXTRA_BYTES: usize = NONCE_LEN + TAG_BYTES;
const SEALED_BYTES: usize = BLOCK_BYTES + EXTRA_BYTES;

/// A key that only the application has, for [`BlobOptions`](crate::BlobOptions). Blobs that are written
/// with it can only be read with it: if it is lost, so are they.
#[derive(Clone)]
pub struct EncryptionKey {
    derives: Prk,
    /// Tells one key from another, and nothing about it.
    number: [u8; 8],
}

impl EncryptionKey {
    /// A key of 32 random bytes. A password is none.
    pub fn new(bytes: &[u8; 32]) -> EncryptionKey {
        let derives = Salt::new(HKDF_SHA256, &[]).extract(bytes);
        let mut long = [0; 32];
        let derived = derives.expand(&[b"nacre key"], HKDF_SHA256).and_then(|k| k.fill(&mut long));
        assert!(derived.is_ok(), "a key derives as many bytes as a hash has");
        let mut number = [0; 8];
        number.copy_from_slice(&long[..8]);
        EncryptionKey { derives, number }
    }

    /// A key as 64 hexadecimal digits.
    ///
    /// Errors: `io`, without the text.
    pub fn from_hex(text: &str) -> Result<EncryptionKey> {
        let text = text.trim();
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Error::io("the key of the blobs is not 64 hexadecimal digits")
                .with_hint("make one with `openssl rand -hex 32`, and keep it"));
        }
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = value(digits[0]) << 4 | value(digits[1]);
        }
        Ok(EncryptionKey::new(&bytes))
    }

    /// Encrypts a blob.
    ///
    /// Errors: `io` if the system has no random numbers.
    pub(crate) fn seal(&self, name: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let blocks = plain.len().div_ceil(BLOCK_BYTES).max(1);
        let mut sealed = Vec::with_capacity(HEAD_BYTES + plain.len() + blocks * EXTRA_BYTES);
        sealed.extend_from_slice(&MAGIC);
        sealed.extend_from_slice(&self.number);
        let mut nonces = vec![[0; NONCE_LEN]; blocks];
        let random = SystemRandom::new().fill(nonces.as_flattened_mut());
        random.map_err(|_| Error::io("the system has no random numbers"))?;
        let key = self.key_of(name)?;
        for (i, mut nonce) in nonces.into_iter().enumerate() {
            nonce[0] = nonce[0] & !1 | u8::from(i + 1 == blocks);
            let content = &plain[i * BLOCK_BYTES..plain.len().min((i + 1) * BLOCK_BYTES)];
            sealed.extend_from_slice(&nonce);
            let at = sealed.len();
            sealed.extend_from_slice(content);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = key.seal_in_place_separate_tag(nonce, place(i as u64), &mut sealed[at..]);
            let tag = tag.map_err(|_| Error::io(format!("blob {name} cannot be encrypted")))?;
            sealed.extend_from_slice(tag.as_ref());
        }
        debug_assert_eq!(plain_len(sealed.len() as u64), Some(plain.len() as u64));
        Ok(sealed)
    }

    /// Decrypts a whole blob.
    ///
    /// Errors: `io` if it was not encrypted, or with another key; `corrupt`.
    pub(crate) fn open(&self, name: &str, mut sealed: Vec<u8>) -> Result<Vec<u8>> {
        if !is_sealed(&sealed) {
            return Err(Error::io(format!("blob {name} is not encrypted")).with_hint(
                "leave the key out: blobs are encrypted from their beginning on or not",
            ));
        }
        if sealed.get(MAGIC.len()..HEAD_BYTES) != Some(&self.number) {
            return Err(Error::io(format!("blob {name} is encrypted with another key"))
                .with_hint("give the key that it was written with"));
        }
        sealed.drain(..HEAD_BYTES);
        let is_last = self.open_blocks(name, 0, &mut sealed)?;
        match is_last {
            true => Ok(sealed),
            false => Err(damaged(name)),
        }
    }

    /// Decrypts the blocks from the number `first` on, in place. Returns whether the last of them is the
    /// last one of the blob.
    ///
    /// Errors: `corrupt`.
    pub(crate) fn open_blocks(&self, name: &str, first: u64, sealed: &mut Vec<u8>) -> Result<bool> {
        let key = self.key_of(name)?;
        let (mut from, mut to, mut is_last) = (0, 0, false);
        while from < sealed.len() {
            let len = (sealed.len() - from).min(SEALED_BYTES);
            let block = &mut sealed[from..from + len];
            let number = first + (from / SEALED_BYTES) as u64;
            // Nothing follows the last one, and it alone may be shorter.
            if is_last || len < EXTRA_BYTES {
                return Err(damaged(name));
            }
            let (nonce, rest) = block.split_at_mut(NONCE_LEN);
            let (content, tag) = rest.split_at_mut(len - EXTRA_BYTES);
            is_last = nonce[0] & 1 == 1;
            let opened = Nonce::try_assume_unique_for_key(nonce).and_then(|nonce| {
                let tag = Tag::try_from(&*tag).map_err(|_| ring::error::Unspecified)?;
                key.open_in_place_separate_tag(nonce, place(number), tag, content, 0..)?;
                Ok(content.len())
            });
            let content = opened.map_err(|_| damaged(name))?;
            if len < SEALED_BYTES && !is_last {
                return Err(damaged(name));
            }
            sealed.copy_within(from + NONCE_LEN..from + NONCE_LEN + content, to);
            (from, to) = (from + len, to + content);
        }
        sealed.truncate(to);
        Ok(is_last)
    }

    /// The key of a blob.
    fn key_of(&self, name: &str) -> Result<LessSafeKey> {
        let about = [b"nacre blob ", name.as_bytes()];
        match self.derives.expand(&about, &AES_256_GCM) {
            Ok(derived) => Ok(LessSafeKey::new(UnboundKey::from(derived))),
            Err(_) => Err(Error::io(format!("blob {name} has no key"))),
        }
    }
}

/// Shows no secret.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

/// A block belongs where it is.
fn place(number: u64) -> Aad<[u8; 8]> {
    Aad::from(number.to_le_bytes())
}

#[cold]
fn damaged(name: &str) -> Error {
    Error::corrupt(format!("blob {name} is not what was written"))
        .with_hint("its bytes were changed, or are those of another blob")
}

/// Whether a blob that begins so is encrypted.
pub(crate) fn is_sealed(blob: &[u8]) -> bool {
    blob.starts_with(&MAGIC)
}

/// The blocks that have a range of a blob: the number of the first one, and where they are in the
/// encrypted blob, if the last one is whole.
pub(crate) fn blocks_of(range: &Range<u64>) -> Option<(u64, Range<u64>)> {
    let (first, last) =
        (range.start / BLOCK_BYTES as u64, range.end.checked_sub(1)? / BLOCK_BYTES as u64);
    let at = |number: u64| number.checked_mul(SEALED_BYTES as u64)?.checked_add(HEAD_BYTES as u64);
    Some((first, at(first)?..at(last.checked_add(1)?)?))
}

/// Where a block begins in the blob.
pub(crate) fn start_of(block: u64) -> u64 {
    block * BLOCK_BYTES as u64
}

/// The length of a blob whose encrypted one has this length, if it can have it.
pub(crate) fn plain_len(sealed: u64) -> Option<u64> {
    let body = sealed.checked_sub(HEAD_BYTES as u64)?;
    let (whole, rest) = (body / SEALED_BYTES as u64, body % SEALED_BYTES as u64);
    match (whole, rest) {
        (0, 0) => None,
        (_, 0) => Some(whole * BLOCK_BYTES as u64),
        _ => Some(whole * BLOCK_BYTES as u64 + rest.checked_sub(EXTRA_BYTES as u64)?),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BLOCK_BYTES, EXTRA_BYTES, EncryptionKey, HEAD_BYTES, SEALED_BYTES, blocks_of, plain_len,
    };
    use nacre_host::ErrorKind;

    fn key() -> EncryptionKey {
        EncryptionKey::new(&std::array::from_fn(|i| i as u8))
    }

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|i| ((i * 31) ^ (i >> 8)) as u8).collect()
    }

    #[test]
    fn blobs_of_every_length_come_back() {
        for len in [0, 1, 100, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            let plain = content(len);
            let sealed = key().seal("a/b", &plain).unwrap();
            assert_eq!(plain_len(sealed.len() as u64), Some(len as u64));
            assert!(len < 16 || !sealed.windows(16).any(|part| plain.starts_with(part)));
            assert_eq!(key().open("a/b", sealed).unwrap(), plain, "{len} bytes");
        }
    }

    #[test]
    fn ranges_are_read_from_their_blocks() {
        let plain = content(5 * BLOCK_BYTES + 77);
        let sealed = key().seal("a", &plain).unwrap();
        for range in [0..1, 8_191..8_193, 8_192..8_193, 20_000..41_000, 41_036..41_037] {
            let (first, at) = blocks_of(&range).unwrap();
            let end = sealed.len().min(at.end as usize);
            let mut blocks = sealed[at.start as usize..end].to_vec();
            let is_last = key().open_blocks("a", first, &mut blocks).unwrap();
            let from = first as usize * BLOCK_BYTES;
            let (start, end) = (range.start as usize - from, range.end as usize - from);
            assert_eq!(blocks[start..end], plain[from + start..from + end], "{range:?}");
            assert_eq!(is_last, range.end > 5 * BLOCK_BYTES as u64, "{range:?}");
        }
        assert_eq!(blocks_of(&(0..0)), None);
        assert_eq!(blocks_of(&(u64::MAX - 1..u64::MAX)), None);
    }

    /// Whatever is done to the bytes of a blob is noticed.
    #[test]
    fn changed_blobs_are_refused() {
        let plain = content(2 * BLOCK_BYTES + 10);
        let sealed = key().seal("a", &plain).unwrap();
        let refused = |what: &str, blob: Vec<u8>| {
            let error = key().open("a", blob).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        };
        for at in (HEAD_BYTES..sealed.len()).step_by(37) {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            refused(&format!("byte {at}"), changed);
        }
        for len in [HEAD_BYTES, HEAD_BYTES + 20, HEAD_BYTES + SEALED_BYTES, sealed.len() - 1] {
            refused(&format!("{len} bytes"), sealed[..len].to_vec());
        }
        let mut longer = sealed.clone();
        longer.extend_from_slice(&sealed[sealed.len() - 10 - EXTRA_BYTES..]);
        refused("a second end", longer);
        let mut swapped = sealed.clone();
        let (one, other) = swapped[HEAD_BYTES..].split_at_mut(SEALED_BYTES);
        one.swap_with_slice(&mut other[..SEALED_BYTES]);
        refused("exchanged blocks", swapped);
        // What another blob has.
        assert_eq!(key().open("b", sealed).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn other_keys_and_plain_blobs_are_told_apart() {
        let sealed = key().seal("a", b"content").unwrap();
        let error = EncryptionKey::new(&[7; 32]).open("a", sealed).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Io && error.message().contains("another key"),
            "{error}"
        );
        let error = key().open("a", b"content".to_vec()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Io && error.message().contains("not encrypted"),
            "{error}"
        );
    }

    #[test]
    fn keys_are_hexadecimal_digits_and_not_shown() {
        let hex: String = (0..32).map(|i| format!("{i:02X}")).collect();
        let sealed =
            EncryptionKey::from_hex(&format!(" {hex}\n")).unwrap().seal("a", b"x").unwrap();
        assert_eq!(key().open("a", sealed).unwrap(), b"x");
        assert!(!format!("{:?}", key()).contains('0'));
        for text in ["", "00", &hex[1..], &hex.replace('0', "g"), &"é".repeat(32)] {
            let error = EncryptionKey::from_hex(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(text.is_empty() || !error.message().contains(text), "{error}");
        }
    }

    /// The same bytes as the test of the package has: both must read what the other one writes.
    #[test]
    fn the_format_is_that_of_the_package() {
        let mut sealed = Vec::new();
        let hex = concat!(
            "4e4143524553454144034bc56add6dd205c846ae2d49edca3c87cd577f1266e3",
            "b8dd50a430ad7f3dcdcd656b19f47ba2d178387c8e5043e8041e2e479f51c08bae96826cf147",
        );
        for at in (0..hex.len()).step_by(2) {
            sealed.push(u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        }
        assert_eq!(key().open("log/1", sealed).unwrap(), b"written once, read by both");
    }
}
