//! Arrow IPC streams as rows of a table, in pieces of any size.
//!
//! The reader of the crate `arrow-ipc` takes all types, and panics on some damaged streams; a panic
//! ends the engine in WebAssembly. This one takes the flat types of tables only, and checks every
//! length and offset. It reads vectors from the buffers of a message, without arrays in between.
//!
//! Source: Apache Arrow, *Columnar Format*, the section on interprocess communication.

mod fields;
mod flat;
mod form;
mod messages;
#[cfg(test)]
mod tests;
mod values;

use fields::{Fields, fields_of};
use messages::{Header, Message, Messages};
use nacre_column::Batch;
use nacre_types::{Error, Result, TableSchema};
use std::sync::Arc;

/// Reads Arrow IPC streams as rows of a table. Columns are matched by name, without regard to case,
/// and must have the types that [`batch_from_arrow`](super::batch_from_arrow) accepts. A column of
/// the table that a stream lacks has its default in all rows.
///
/// One stream may follow another, each with its own schema, as
/// [`Rows::next_arrow_ipc`](crate::Rows::next_arrow_ipc) returns them.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, OnDuplicate, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// use nacredb::arrow::ArrowStreamReader;
///
/// session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// let found = session.execute("select 'pearl' as name, cast(1 as bigint) as id", &[]).await?;
/// let stream = found.to_arrow_ipc()?;
///
/// let mut appender = session.appender("items", OnDuplicate::Error).await?;
/// let mut reader = ArrowStreamReader::new(appender.schema().clone());
/// for piece in stream.chunks(100) {
///     for batch in reader.push(piece)? {
///         appender.append(&batch)?;
///     }
/// }
/// reader.end()?;
/// assert_eq!(appender.finish().await?, 1);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub struct ArrowStreamReader {
    table: Arc<TableSchema>,
    messages: Messages,
    /// The columns of the current stream; `None` before its schema.
    fields: Option<Fields>,
}

impl ArrowStreamReader {
    /// A reader of rows of this table.
    pub fn new(table: Arc<TableSchema>) -> ArrowStreamReader {
        ArrowStreamReader { table, messages: Messages::default(), fields: None }
    }

    /// Takes the next bytes and returns the rows that are complete with them.
    ///
    /// Errors: `corrupt` if the bytes are no Arrow stream; `not_found` for a column that the table
    /// does not have; `type` for one of another type; `unsupported` for compressed and big-endian
    /// streams, and for dictionaries in several parts. After an error the rest cannot be read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Batch>> {
        self.messages.push(bytes);
        let mut batches = Vec::new();
        while let Some(message) = self.messages.next()? {
            if let Some(batch) = self.read(&message)? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// Checks that the bytes have ended with a message.
    ///
    /// Errors: `corrupt` if the last message is not complete, or there was no schema.
    pub fn end(&self) -> Result<()> {
        if !self.messages.is_empty() {
            return Err(Error::corrupt("the Arrow stream ends in the middle of a message"));
        }
        match self.messages.has_begun() {
            true => Ok(()),
            false => Err(Error::corrupt("the Arrow stream is empty")),
        }
    }

    fn read(&mut self, message: &Message) -> Result<Option<Batch>> {
        let header = message.header()?;
        if message.is_end() && self.fields.take().is_some() {
            return Ok(None);
        }
        if let Some(Header::Schema(schema)) = header {
            self.fields = Some(fields_of(schema, &self.table)?);
            return Ok(None);
        }
        let Some(fields) = &mut self.fields else {
            return Err(Error::corrupt("the Arrow stream does not begin with a schema"));
        };
        match header {
            Some(Header::RecordBatch(batch)) => {
                fields.batch(batch, message.body(), &self.table).map(Some)
            }
            Some(Header::DictionaryBatch(dictionary)) => {
                fields.keep_dictionary(dictionary, message.body(), &self.table)?;
                Ok(None)
            }
            _ => Err(Error::unsupported("a tensor in an Arrow stream")),
        }
    }
}
