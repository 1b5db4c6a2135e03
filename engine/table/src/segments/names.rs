//! Names of a store's files: a kind and a number. The log names its own.
//!
//! Segments, hash tables and index parts in files of their own share one sequence of numbers.

use nacre_host::{number_of_file, numbered_file_name};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A segment.
    Segment,
    /// A file of a hash table.
    Hashes,
    /// An index part that is not in its segment's file.
    Part,
    /// What a statement could not hold in memory.
    Temporary,
}

impl FileKind {
    /// Kinds that the log names.
    pub const LOGGED: [FileKind; 3] = [FileKind::Segment, FileKind::Hashes, FileKind::Part];

    /// What names of this kind begin with.
    fn prefix(self) -> &'static str {
        match self {
            FileKind::Segment => "seg-",
            FileKind::Hashes => "hsh-",
            FileKind::Part => "idx-",
            FileKind::Temporary => "tmp-",
        }
    }

    /// The name of the file with a number.
    pub fn name(self, number: u64) -> String {
        let name = numbered_file_name(self.prefix(), number);
        debug_assert!(self.number(&name) == Some(number), "{name} does not name file {number}");
        name
    }

    /// The number of a file of this kind; `None` for any other name.
    pub fn number(self, name: &str) -> Option<u64> {
        number_of_file(self.prefix(), name)
    }
}
