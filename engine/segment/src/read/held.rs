//! Blocks that a reader holds: their pages, from the cache or loaded, and opening them.

use super::address::BlockAddress;
use super::cache::{Page, Purpose};
use super::opened::Opened;
use nacre_column::Values;
use nacre_column::block::Block;
use nacre_column::encoding::Dictionary;
use nacre_types::{Error, Result};
use std::sync::{Arc, OnceLock};

/// The pages of a block: its own and, if it takes the dictionary, that one.
pub(crate) struct LoadedBlock {
    page: Arc<Page>,
    dictionary: Option<Arc<Page>>,
}

impl Opened {
    /// The pages of a block, if cached.
    pub(super) fn cached(
        &self,
        column: usize,
        block: usize,
        purpose: Purpose,
    ) -> Option<LoadedBlock> {
        let entry = &self.columns[column];
        let dictionary = match entry.encodings.get(block)?.shares() {
            true => Some(self.slots.get(column, entry.blocks(), purpose)?),
            false => None,
        };
        Some(LoadedBlock { page: self.slots.get(column, block, purpose)?, dictionary })
    }

    /// The pages of a block, loaded if not cached.
    #[inline]
    pub(super) fn held(
        &self,
        column: usize,
        block: usize,
        purpose: Purpose,
    ) -> Result<LoadedBlock> {
        let entry = &self.columns[column];
        let needs_dictionary = entry.encodings[block].shares();
        let page = self.slots.get(column, block, purpose);
        let dictionary =
            if needs_dictionary { self.slots.get(column, entry.blocks(), purpose) } else { None };
        match page {
            Some(page) if !needs_dictionary || dictionary.is_some() => {
                Ok(LoadedBlock { page, dictionary })
            }
            page => self.held_after_reading(column, block, page, dictionary, purpose),
        }
    }

    #[cold]
    fn held_after_reading(
        &self,
        column: usize,
        block: usize,
        page: Option<Arc<Page>>,
        dictionary: Option<Arc<Page>>,
        purpose: Purpose,
    ) -> Result<LoadedBlock> {
        // The result holds the pages, even if the cache is too small to keep them.
        let missing_dictionary =
            self.dictionary_address(column, block).filter(|_| dictionary.is_none());
        let missing_page = page.is_none().then(|| self.block_address(column, block));
        let mut places: Vec<BlockAddress> =
            missing_dictionary.into_iter().chain(missing_page).collect();
        places.sort_unstable_by_key(|place| place.offset);
        let (mut page, mut dictionary) = (page, dictionary);
        for (place, loaded) in places.iter().zip(self.load_addresses(&places)?) {
            loaded.count_use(purpose);
            if place.index == block { page = Some(loaded) } else { dictionary = Some(loaded) }
        }
        debug_assert!(
            dictionary.is_some() || self.dictionary_address(column, block).is_none(),
            "block {block} is loaded without its dictionary"
        );
        match page {
            Some(page) => Ok(LoadedBlock { page, dictionary }),
            None => Err(Error::corrupt("block was not loaded")),
        }
    }

    /// Opens a loaded block.
    #[inline]
    pub(crate) fn open_block<'a>(
        &self,
        held: &'a LoadedBlock,
        column: usize,
        block: usize,
    ) -> Result<Block<'a>> {
        let dictionary = held.dictionary.as_ref().map(|page| (&*page.bytes, &page.decoded));
        self.open_bytes(&held.page.bytes, dictionary, column, block)
    }

    pub(crate) fn open_bytes<'a>(
        &self,
        bytes: &'a [u8],
        dictionary: Option<(&'a [u8], &'a OnceLock<Arc<Values>>)>,
        column: usize,
        block: usize,
    ) -> Result<Block<'a>> {
        let entry = &self.columns[column];
        let data_type = entry.meta.data_type;
        let dictionary = match (dictionary, entry.dictionary) {
            (Some((bytes, decoded)), Some(place)) => {
                Some(Dictionary { bytes, count: place.values as usize, decoded })
            }
            _ => None,
        };
        debug_assert!(
            dictionary.is_some() || !entry.encodings[block].shares(),
            "block {block} is opened without its dictionary"
        );
        Block::open(bytes, data_type, entry.encodings[block], entry.block_rows(block), dictionary)
    }

    #[inline]
    pub(crate) fn with_block<T>(
        &self,
        column: usize,
        block: usize,
        purpose: Purpose,
        read: impl FnOnce(&Block<'_>) -> Result<T>,
    ) -> Result<T> {
        if block >= self.columns[column].blocks() {
            return Err(Error::corrupt(format!("segment {} has no block {block}", self.name())));
        }
        let held = self.held(column, block, purpose)?;
        let result = self.open_block(&held, column, block).and_then(|block| read(&block));
        result.map_err(|error| self.locate_block(error, column, block))
    }
}
