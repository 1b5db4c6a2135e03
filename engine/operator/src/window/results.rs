//! Results of window calls, reserved as they grow: texts may take many times the memory of the
//! rows.

use crate::buffer::limits::MOST_TEXT_BYTES;
use crate::context::Context;
use crate::memory::Reservation;
use nacre_column::VectorBuilder;
use nacre_function::vector::room::Room;
use nacre_types::{Result, Value};

/// Reserve memory again after this many bytes of text.
const STEP_BYTES: usize = 64 << 10;

/// The results of all calls over the same rows.
pub(super) struct Results<'a> {
    held: &'a mut Reservation,
    /// Bytes already reserved for the rows.
    base_bytes: usize,
    text_bytes: usize,
    asked_for: usize,
    /// Room for the texts of the current call.
    room: Room,
    /// Whether a reservation failed.
    pub refused: bool,
}

impl<'a> Results<'a> {
    /// Starts without results, over rows that take `base_bytes`.
    pub fn new(held: &'a mut Reservation, base_bytes: usize) -> Results<'a> {
        Results {
            held,
            base_bytes,
            text_bytes: 0,
            asked_for: 0,
            room: Room::new(MOST_TEXT_BYTES),
            refused: false,
        }
    }

    /// Starts the next call.
    pub fn begin(&mut self) {
        self.room = Room::new(MOST_TEXT_BYTES);
    }

    /// Appends a result. Fixed-width results are already reserved with the rows.
    pub fn push(
        &mut self,
        out: &mut VectorBuilder,
        value: &Value,
        context: &Context<'_>,
    ) -> Result<()> {
        let before = self.room.taken();
        self.room.take_value(value)?;
        self.text_bytes += self.room.taken() - before;
        if self.text_bytes >= self.asked_for + STEP_BYTES {
            self.asked_for = self.text_bytes;
            if !self.held.try_resize(self.base_bytes + self.text_bytes, context.memory) {
                self.refused = true;
                return Err(context.over_limit("window"));
            }
        }
        out.push(value);
        Ok(())
    }
}
