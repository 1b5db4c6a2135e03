//! Seekable encodings: how the values of one block are stored, and how one row, some rows or a
//! range are read.
//!
//! Each encoding owns a folder, documents its body there and implements [`scheme::Scheme`]. Its
//! line in the list below assigns its number and registers it with all code that writes, reads,
//! reports or tests blocks. Bytes are untrusted, so every decoder returns `corrupt` instead of
//! panicking, and allocates no more than a small multiple of what the bytes and the row count
//! justify. Checksums, zone maps and files are outside this module.

pub(crate) mod header;
pub(crate) mod read;
pub(crate) mod scheme;
pub(crate) mod values;

pub use dictionary::MAX_DICTIONARY_VALUES;
pub use onpair::tokens::TokenSet;
pub use scheme::{Dictionary, Input, Shared};
pub use values::{decode_values, encode_values};

use nacre_types::Result;
use scheme::{Body, Offer, Scheme, See, Source};

/// Properties of an encoding in the list, besides its number.
pub(crate) struct Entry {
    pub name: &'static str,
    pub offer: Offer,
    pub seek_one_in: usize,
    pub suits: fn(Input<'_>, usize) -> bool,
    pub pays: fn(usize, usize) -> bool,
    pub shares: bool,
    pub encode: fn(Input<'_>, Shared<'_>, &mut Vec<u8>) -> bool,
}

impl Entry {
    const fn of<S: Scheme<'static>>() -> Entry {
        Entry {
            name: S::NAME,
            offer: S::OFFER,
            seek_one_in: S::SEEK_ONE_IN,
            suits: S::suits,
            pays: S::pays,
            shares: S::SHARES,
            encode: S::encode,
        }
    }
}

/// Declares the modules of the encodings, the enum of their numbers, and the enum of their opened
/// bodies. An enum instead of a trait object, because a point read must not allocate.
macro_rules! encodings {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $module:ident::$body:ident;)*) => {
        $(pub(crate) mod $module;)*

        /// The encodings, by their number in files. A number is never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Encoding {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Encoding {
            /// Every encoding, in the order in which blocks are offered to them.
            pub const ALL: &[Encoding] = &[$(Encoding::$variant),*];

            pub(crate) const fn entry(self) -> &'static Entry {
                match self {
                    $(Encoding::$variant => const { &Entry::of::<$module::$body<'static>>() },)*
                }
            }
        }

        /// An opened body of any encoding.
        pub(crate) enum Opened<'a> {
            $($variant($module::$body<'a>),)*
        }

        impl<'a> Opened<'a> {
            /// Reads the head of a body.
            #[inline]
            pub(crate) fn open(encoding: Encoding, source: Source<'a>) -> Result<Opened<'a>> {
                match encoding {
                    $(Encoding::$variant => Scheme::open(source).map(Opened::$variant),)*
                }
            }

            /// Passes the head of a body, see [`Scheme::head`].
            pub(crate) fn head(
                encoding: Encoding,
                source: Source<'a>,
                see: See<'_, 'a>,
            ) -> Result<bool> {
                match encoding {
                    $(Encoding::$variant => <$module::$body<'a> as Scheme<'a>>::head(source, see),)*
                }
            }

            #[inline]
            pub(crate) fn body(&self) -> &dyn Body<'a> {
                match self {
                    $(Opened::$variant(body) => body,)*
                }
            }
        }
    };
}

encodings! {
    /// Values stored consecutively.
    Plain = 1, plain::Plain;
    /// One value for all rows, or only nulls.
    Constant = 2, constant::Constant;
    /// Bit-packed codes into a sorted dictionary shared by the column's blocks.
    Dictionary = 4, dictionary::Coded;
    /// Small compressed chunks of rows.
    Lz4 = 5, lz4::Lz4;
    /// Text as codes of frequent short strings.
    Fsst = 8, fsst::Fsst;
    /// Text as codes of words and pairs of words, which the column's blocks share.
    OnPair = 10, onpair::OnPair;
    /// Doubles as the decimal integers they were written from.
    Alp = 9, alp::Alp;
    /// Integers as differences from a reference, in just enough bits.
    BitPacked = 3, bitpacked::BitPacked;
    /// Integers as differences from the preceding row, in just enough bits.
    Delta = 7, delta::Delta;
    /// Equal neighbours as one value and the end of their run.
    RunLength = 6, run_length::RunLength;
}

impl Encoding {
    /// The encoding with a stored number.
    pub fn from_byte(byte: u8) -> Option<Encoding> {
        Encoding::ALL.iter().copied().find(|encoding| *encoding as u8 == byte)
    }

    /// Fetching rows one by one is faster than decoding all of a vector and picking them if at most
    /// one row in this many is wanted.
    pub fn seek_one_in(self) -> usize {
        self.entry().seek_one_in
    }

    /// Whether reading a block takes the dictionary of its column.
    #[inline]
    pub fn shares(self) -> bool {
        self.entry().shares
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        self.entry().name
    }
}

// Bodies and value lists that store an encoding number refer to these.
const _: () = assert!(Encoding::Plain as u8 == values::PLAIN);
const _: () = assert!(Encoding::Plain as u32 == run_length::PLAIN);
const _: () = assert!(Encoding::BitPacked as u32 == run_length::BIT_PACKED);
