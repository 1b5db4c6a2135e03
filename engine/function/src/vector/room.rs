//! The limit on the bytes of text in one vector.

use nacre_types::{Error, Result, Value, limits};

/// Maximum bytes of text that the 32-bit offsets of a vector can address.
const VECTOR_BYTES: usize = u32::MAX as usize;

/// The error for text values that exceed their common memory limit.
#[cold]
pub fn too_much_text(most: usize) -> Error {
    Error::limit(format!("text values exceed {most} bytes"))
        .with_sqlstate("53200")
        .with_hint("make shorter texts or read fewer rows")
}

/// Bytes of text left for a vector being built.
pub struct Room {
    most: usize,
    taken: usize,
}

impl Room {
    /// Room for `most` bytes.
    pub fn new(most: usize) -> Room {
        Room { most, taken: 0 }
    }

    /// The maximum that one vector can address.
    pub fn of_vector() -> Room {
        Room::new(VECTOR_BYTES)
    }

    /// Takes some bytes; `limit` if fewer are left.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        debug_assert!(self.taken <= self.most, "no more is taken than there is");
        if bytes > self.most - self.taken {
            return Err(too_much_text(self.most));
        }
        self.taken += bytes;
        Ok(())
    }

    /// Takes the bytes of a text or binary value; values of other types take none.
    #[inline]
    pub fn take_value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Text(text) | Value::Json(text) => self.take(text.len()),
            Value::Binary(bytes) => self.take(bytes.len()),
            _ => Ok(()),
        }
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> usize {
        self.taken
    }
}

/// Fails (`limit`) if one value would exceed the maximum length.
pub fn check_length(bytes: usize) -> Result<()> {
    if bytes > limits::MAX_VALUE_BYTES {
        let most = limits::MAX_VALUE_BYTES;
        return Err(Error::limit(format!("a text value of more than {most} bytes")));
    }
    Ok(())
}
