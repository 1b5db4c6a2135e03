//! Verification of a whole segment: what `nacre check` runs.

use super::address::BlockAddress;
use super::opened::Opened;
use nacre_column::Scalar;
use nacre_column::{Values, Vector};
use nacre_format::footer::extremes;
use nacre_host::ReadRange;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::sync::{Arc, OnceLock};

impl Opened {
    /// Reads every block from the file, bypassing the cache; verifies checksums, decodes
    /// everything, and compares zone maps with the values. Each error names file, column, block and
    /// byte.
    pub fn verify(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        for column in 0..self.columns.len() {
            let decoded = OnceLock::new();
            let blocks = self.columns[column].blocks();
            let dictionary = (0..blocks).find_map(|block| self.dictionary_address(column, block));
            let bytes = match dictionary.map(|place| self.read_place(&place)).transpose() {
                Ok(bytes) => bytes,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let mut nulls = 0;
            let outline = self.outline_address(column).map(|place| self.read_place(&place));
            let outline = match outline.transpose() {
                Ok(bytes) => bytes,
                Err(error) => {
                    errors.push(error);
                    None
                }
            };
            for block in 0..blocks {
                if let Some(outline) = &outline
                    && let Err(error) = self.verify_stub(column, block, outline)
                {
                    errors.push(error);
                }
                match self.verify_block(column, block, bytes.as_deref(), &decoded) {
                    Ok(count) => nulls += count as u64,
                    Err(error) => errors.push(error),
                }
            }
            if errors.is_empty() && nulls > 0 && !self.columns[column].meta.nullable {
                let id = self.columns[column].meta.id;
                let what = format!(
                    "segment {}, column {id}: {nulls} nulls in a column that is NOT NULL",
                    self.name()
                );
                errors.push(Error::corrupt(what));
            }
        }
        // The bytes that documents are put together from are right.
        if errors.is_empty() {
            errors.extend(self.verify_documents());
        }
        errors
    }

    /// Puts the documents of every block together, and compares them with the zone map.
    fn verify_documents(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        for column in 0..self.columns.len() {
            let Some(documents) = self.documents(column) else { continue };
            for block in 0..self.blocks() {
                let vector = documents.decode(block * BLOCK_ROWS, self.block_rows(block));
                let found = vector.and_then(|vector| self.verify_zone(column, block, &vector));
                errors.extend(found.map_err(|error| self.locate_block(error, column, block)).err());
            }
        }
        errors
    }

    fn read_place(&self, place: &BlockAddress) -> Result<Vec<u8>> {
        let mut buffer = vec![0; place.length];
        self.fetch(&mut [ReadRange { offset: place.offset, buffer: &mut buffer }])
            .map_err(|error| self.locate(error, place))?;
        self.check(place, &buffer)?;
        Ok(buffer)
    }

    fn verify_block(
        &self,
        column: usize,
        block: usize,
        dictionary: Option<&[u8]>,
        decoded: &OnceLock<Arc<Values>>,
    ) -> Result<usize> {
        let place = self.block_address(column, block);
        let bytes = self.read_place(&place)?;
        let vector = self
            .open_bytes(&bytes, dictionary.map(|bytes| (bytes, decoded)), column, block)
            .and_then(|view| view.decode(0, self.columns[column].block_rows(block)));
        vector
            .and_then(|vector| match self.documents(column) {
                Some(_) => Ok(vector.null_count()),
                None => self.verify_zone(column, block, &vector),
            })
            .map_err(|error| self.locate(error, &place))
    }

    /// Compares a block with its stub in the outline of its column. Damage of the block itself is
    /// left to `verify_block`.
    fn verify_stub(&self, column: usize, block: usize, outline: &[u8]) -> Result<()> {
        let place = self.block_address(column, block);
        debug_assert!(
            place.index < self.columns[column].blocks(),
            "the stub of something else than a block"
        );
        let Some(stub) = self.stub(&place, outline)? else { return Ok(()) };
        match self.read_place(&place) {
            Ok(bytes) if !stub.is_of(&bytes) => {
                Err(self.locate(Error::corrupt("outline of another block"), &place))
            }
            _ => Ok(()),
        }
    }

    fn verify_zone(&self, column: usize, block: usize, vector: &Vector) -> Result<usize> {
        let zone = self.zone(column, block);
        let nulls = vector.null_count();
        if nulls != zone.null_count as usize {
            return Err(Error::corrupt(format!(
                "{nulls} nulls where the zone map claims {}",
                zone.null_count
            )));
        }
        let rows = self.columns[column].block_rows(block);
        debug_assert_eq!(vector.len(), rows, "decoded rows of a block");
        let flat = vector.flat();
        let Some((min, max)) = extremes(&flat, vector.validity()) else {
            return Ok(nulls);
        };
        let order = |scalar: &Scalar<'_>, bound: &Value| scalar.compare(bound);
        let (low, high) = (order(&min, &zone.min), order(&max, &zone.max));
        let holds = match zone.exact {
            true => low.is_some_and(|o| o.is_eq()) && high.is_some_and(|o| o.is_eq()),
            false => low.is_some_and(|o| o.is_ge()) && high.is_some_and(|o| o.is_le()),
        };
        if holds {
            Ok(nulls)
        } else {
            Err(Error::corrupt("values outside the bounds of their zone map"))
        }
    }
}
