//! Cuts a stream of bytes into messages: a length, metadata, a body.

use super::flat::Table;
use arrow_ipc::{Message as Layout, MessageHeader};
use nacre_types::{Error, Result};

/// First bytes of a message, before its length. Streams of before 2019 lack them.
const CONTINUATION: u32 = 0xffff_ffff;
/// Maximum length of metadata, which is that of a schema of many thousand columns, in bytes.
const MAX_METADATA: usize = 16 << 20;
/// Maximum length of a body, in bytes.
const MAX_BODY: usize = 1 << 30;

/// Bytes that were not read yet.
#[derive(Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    /// The position of the next message in `bytes`.
    at: usize,
    has_begun: bool,
}

/// A complete message.
pub(super) struct Message {
    /// Empty at the end of a stream.
    metadata: Vec<u8>,
    body: Vec<u8>,
}

/// What a message is, with the table that describes its body.
pub(super) enum Header<'a> {
    Schema(Table<'a>),
    RecordBatch(Table<'a>),
    DictionaryBatch(Table<'a>),
    Other,
}

impl Messages {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Whether there was a message.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The next message; `None` if it is not complete.
    pub fn next(&mut self) -> Result<Option<Message>> {
        let bytes = &self.bytes[self.at..];
        let Some((mut length, mut start)) = u32_at(bytes, 0).map(|length| (length, 4)) else {
            return Ok(None);
        };
        if length == CONTINUATION {
            let Some(next) = u32_at(bytes, 4) else { return Ok(None) };
            (length, start) = (next, 8);
        }
        let length = length as usize;
        if length > MAX_METADATA {
            return Err(Error::corrupt("bytes that are no Arrow IPC stream"));
        }
        let Some(metadata) = bytes.get(start..start + length) else { return Ok(None) };
        let body_bytes = match length {
            0 => 0,
            _ => Table::root(metadata)?.integer(Layout::VT_BODYLENGTH, 8, 0)?,
        };
        let body_bytes = usize::try_from(body_bytes).ok().filter(|bytes| *bytes <= MAX_BODY);
        let body_bytes = body_bytes.ok_or_else(|| {
            Error::limit(format!("an Arrow message longer than {MAX_BODY} bytes"))
        })?;
        let end = start + length + body_bytes;
        let Some(body) = bytes.get(start + length..end) else { return Ok(None) };
        let message = Message { metadata: metadata.to_vec(), body: body.to_vec() };
        self.at += end;
        self.has_begun = true;
        Ok(Some(message))
    }
}

impl Message {
    /// Whether it marks the end of a stream.
    pub fn is_end(&self) -> bool {
        self.metadata.is_empty()
    }

    /// What the message is; `None` at the end of a stream.
    pub fn header(&self) -> Result<Option<Header<'_>>> {
        if self.is_end() {
            return Ok(None);
        }
        let root = Table::root(&self.metadata)?;
        let kind = MessageHeader(root.integer(Layout::VT_HEADER_TYPE, 1, 0)? as u8);
        let Some(table) = root.table(Layout::VT_HEADER)? else { return Ok(Some(Header::Other)) };
        Ok(Some(match kind {
            MessageHeader::Schema => Header::Schema(table),
            MessageHeader::RecordBatch => Header::RecordBatch(table),
            MessageHeader::DictionaryBatch => Header::DictionaryBatch(table),
            _ => Header::Other,
        }))
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
