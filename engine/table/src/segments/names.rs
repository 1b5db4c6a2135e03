//! File names of a store: a kind and a number. The log names its own files.
//!
//! Segments, hash tables and separate index parts share one number sequence.

use nacre_host::{number_of_file, numbered_file_name};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    /// A segment.
    Segment,
    /// A file of a hash table.
    Hashes,
    /// A separate index part.
    Part,
    /// Rows that a statement spilled.
    Temporary,
}

impl FileKind {
    /// Kinds of files that the log names.
    pub const LOGGED: [FileKind; 3] = [FileKind::Segment, FileKind::Hashes, FileKind::Part];

    /// The kind and the number of a file that the log may name; `None` for any other name.
    pub fn of_logged(name: &str) -> Option<(FileKind, u64)> {
        FileKind::LOGGED.iter().find_map(|kind| Some((*kind, kind.number(name)?)))
    }

    /// The prefix of file names of this kind.
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
        let number = number_of_file(self.prefix(), name);
        debug_assert!(
            number.is_none_or(|number| numbered_file_name(self.prefix(), number) == name),
            "{name} is not the name of file {number:?}"
        );
        number
    }
}
