//! Rows of a result as an Arrow IPC stream, encoded from vectors without arrays in between.
//!
//! Writes the same bytes as [`to_ipc_stream`](super::to_ipc_stream), which takes any record batch.
//! Results have flat types only; going around the arrays and the writer of all types saves a
//! browser 55 KB of compressed code and one copy of the rows.
//!
//! Source: Apache Arrow, *Columnar Format*, "Encapsulated message format" and "RecordBatch message".

use super::export::{lossy, schema_of, texts_of, within_array};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Buffer, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use nacre_column::{Batch, Values, Vector};
use nacre_sql::Field;
use nacre_types::{DataType, Error, Interval, PhysicalType, Result, invariant};

/// Alignment of messages and of the buffers of their bodies, in bytes.
const ALIGNMENT: usize = 64;
/// First bytes of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Encodes batches without a selection as an IPC stream: the schema, one record batch for each
/// batch, the end of the stream.
///
/// Errors: those of [`vector_to_arrow`](super::vector_to_arrow).
pub(crate) fn rows_to_ipc_stream(columns: &[Field], batches: &[Batch]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut flat = FlatBufferBuilder::new();
    let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut flat, &schema_of(columns));
    write_message(&mut out, flat, MessageHeader::Schema, schema.as_union_value(), &[]);
    for batch in batches {
        invariant!(
            batch.columns.len() == columns.len(),
            "{} columns in a batch of {}",
            batch.columns.len(),
            columns.len()
        );
        write_batch(&mut out, batch)?;
    }
    out.extend(CONTINUATION);
    out.extend([0; 4]);
    Ok(out)
}

fn write_batch(out: &mut Vec<u8>, batch: &Batch) -> Result<()> {
    let mut body = Body::default();
    batch.columns.iter().try_for_each(|column| body.column(column))?;
    let mut flat = FlatBufferBuilder::new();
    let buffers = flat.create_vector(&body.buffers);
    let nodes = flat.create_vector(&body.nodes);
    let mut header = RecordBatchBuilder::new(&mut flat);
    header.add_length(batch.rows as i64);
    header.add_nodes(nodes);
    header.add_buffers(buffers);
    let header = header.finish().as_union_value();
    write_message(out, flat, MessageHeader::RecordBatch, header, &body.bytes);
    Ok(())
}

/// Appends a message: its length, its metadata with a header, its body.
fn write_message(
    out: &mut Vec<u8>,
    mut flat: FlatBufferBuilder,
    kind: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body: &[u8],
) {
    let mut message = MessageBuilder::new(&mut flat);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(kind);
    message.add_bodyLength(body.len() as i64);
    message.add_header(header);
    let message = message.finish();
    flat.finish(message, None);
    let metadata = flat.finished_data();
    let start = out.len();
    let end = (start + 8 + metadata.len()).next_multiple_of(ALIGNMENT);
    out.reserve(end - start + body.len());
    out.extend(CONTINUATION);
    out.extend(((end - start - 8) as u32).to_le_bytes());
    out.extend_from_slice(metadata);
    out.resize(end, 0);
    out.extend_from_slice(body);
    debug_assert!(out.len().is_multiple_of(ALIGNMENT), "a message of {} bytes", out.len() - start);
}

/// The body of a record batch, with the places of its columns' buffers.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    nodes: Vec<FieldNode>,
    buffers: Vec<Buffer>,
}

impl Body {
    fn column(&mut self, vector: &Vector) -> Result<()> {
        let rows = vector.len();
        if vector.data_type() == DataType::Null {
            self.nodes.push(FieldNode::new(rows as i64, rows as i64));
            return Ok(());
        }
        let nulls = vector.null_count();
        self.nodes.push(FieldNode::new(rows as i64, nulls as i64));
        let start = self.bytes.len();
        if let Some(validity) = vector.validity().filter(|_| nulls > 0) {
            self.bytes.extend(validity.words().iter().flat_map(|word| word.to_le_bytes()));
            self.bytes.truncate(start + rows.div_ceil(8));
        }
        self.end_buffer(start);
        match vector.data_type().physical() {
            PhysicalType::Bytes => self.texts(vector),
            _ if vector.data_type() == DataType::Uuid => self.texts(&texts_of(vector)),
            _ => self.values(vector),
        }
    }

    /// Ends the buffer that begins at a position.
    fn end_buffer(&mut self, start: usize) {
        debug_assert!(start.is_multiple_of(ALIGNMENT), "a buffer begins at {start}");
        let len = self.bytes.len() - start;
        self.buffers.push(Buffer::new(start as i64, len as i64));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn texts(&mut self, vector: &Vector) -> Result<()> {
        within_array(vector)?;
        let is_text = !matches!(vector.data_type(), DataType::Binary { .. });
        let mut texts = Vec::with_capacity(vector.flat_bytes());
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        for row in 0..vector.len() {
            match vector.bytes(row) {
                Some(bytes) if is_text => texts.extend_from_slice(lossy(bytes).as_bytes()),
                Some(bytes) => texts.extend_from_slice(bytes),
                None => {}
            }
            self.bytes.extend((texts.len() as u32).to_le_bytes());
        }
        self.end_buffer(start);
        let start = self.bytes.len();
        self.bytes.append(&mut texts);
        self.end_buffer(start);
        Ok(())
    }

    fn values(&mut self, vector: &Vector) -> Result<()> {
        use DataType as T;
        let (start, out) = (self.bytes.len(), &mut self.bytes);
        match (vector.data_type(), &*vector.flat()) {
            (T::Boolean, Values::Bool(v)) => out.extend(v.chunks(8).map(packed)),
            (T::Int8 | T::UInt8, Values::I64(v)) => fixed(out, v, |v| [v as u8]),
            (T::Int16 | T::UInt16, Values::I64(v)) => fixed(out, v, |v| (v as u16).to_le_bytes()),
            (T::Int32 | T::UInt32 | T::Date, Values::I64(v)) => {
                fixed(out, v, |v| (v as u32).to_le_bytes());
            }
            (T::Int64 | T::Time | T::Timestamp | T::TimestampTz, Values::I64(v)) => {
                fixed(out, v, i64::to_le_bytes);
            }
            (T::UInt64, Values::I128(v)) => fixed(out, v, |v| (v as u64).to_le_bytes()),
            (T::Float32, Values::F64(v)) => fixed(out, v, |v| (v as f32).to_le_bytes()),
            (T::Float64, Values::F64(v)) => fixed(out, v, f64::to_le_bytes),
            (T::Decimal { .. }, Values::I64(v)) => fixed(out, v, |v| i128::from(v).to_le_bytes()),
            (T::Decimal { .. }, Values::I128(v)) => fixed(out, v, i128::to_le_bytes),
            (T::Interval, Values::I128(v)) => intervals(out, v)?,
            (data_type, _) => return Err(Error::unsupported(format!("{data_type} in Arrow"))),
        }
        self.end_buffer(start);
        Ok(())
    }
}

/// Appends values of a fixed width.
fn fixed<T: Copy, const N: usize>(out: &mut Vec<u8>, values: &[T], bytes: fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + values.len() * N, 0);
    for (to, value) in out[start..].chunks_exact_mut(N).zip(values) {
        to.copy_from_slice(&bytes(*value));
    }
}

/// Up to eight truth values as the bits of a byte, the first one lowest.
fn packed(values: &[bool]) -> u8 {
    values.iter().enumerate().fold(0, |byte, (at, value)| byte | u8::from(*value) << at)
}

/// Appends intervals as months, days and nanoseconds.
fn intervals(out: &mut Vec<u8>, values: &[i128]) -> Result<()> {
    for packed in values {
        let Interval { months, days, micros } = Interval::unpack(*packed);
        let nanos = micros
            .checked_mul(1_000)
            .ok_or_else(|| Error::out_of_range("interval does not fit Arrow's nanoseconds"))?;
        out.extend(months.to_le_bytes());
        out.extend(days.to_le_bytes());
        out.extend(nanos.to_le_bytes());
    }
    Ok(())
}
