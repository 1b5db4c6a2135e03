//! Texts that ran before, so that a text that comes again is not parsed again, nor bound again if
//! it is a point statement.
//!
//! What is bound is in `text_binding`.
//!
//! A text is kept when it comes the second time: texts with their values in them come once, and
//! would take the place of others. The cache belongs to the database, because sessions are short: a
//! transaction in JavaScript has its own. It holds at most [`SHARDS`] × [`TEXTS`] texts of at most
//! [`TEXT_BYTES`].

use nacre_sql::Parsed;
use nacre_types::Result;
use nacre_types::hash::hash_bytes;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of independently locked parts, for sessions on several threads.
const SHARDS: usize = 8;
/// Maximum number of texts in a part.
const TEXTS: usize = 16;
/// Number of texts of a part that came once, of which only the hash is kept.
const SEEN: usize = 32;
/// Length of the longest text that is kept, in bytes. Longer ones are mostly inserts of many rows,
/// whose trees are large.
const TEXT_BYTES: usize = 4 << 10;

/// The texts of a database that ran most recently.
#[derive(Default)]
pub(crate) struct StatementCache {
    shards: [Mutex<Shard>; SHARDS],
}

/// A part of the cache.
#[derive(Default)]
struct Shard {
    /// The newest first.
    entries: Vec<Entry>,
    /// Hashes of texts that came once, the newest first.
    seen: Vec<u64>,
}

struct Entry {
    hash: u64,
    text: Box<str>,
    parsed: Arc<ParsedText>,
}

/// The statements of a text.
pub(crate) struct ParsedText {
    pub statements: Vec<TextStatement>,
}

/// A statement of a text.
pub(crate) struct TextStatement {
    parsed: Parsed,
    kept: Mutex<Option<Kept>>,
}

/// The last binding of a statement, without its type: a binding knows the engine, which has the
/// cache.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

impl StatementCache {
    /// Parses a text, unless it is known.
    pub fn parse(&self, text: &str) -> Result<Arc<ParsedText>> {
        if text.len() > TEXT_BYTES {
            return ParsedText::new(text).map(Arc::new);
        }
        let hash = hash_bytes(text.as_bytes());
        let shard = &self.shards[hash as usize % SHARDS];
        if let Some(known) = locked(shard).get(hash, text) {
            return Ok(known);
        }
        let parsed = Arc::new(ParsedText::new(text)?);
        locked(shard).add(hash, text, &parsed);
        Ok(parsed)
    }

    /// Forgets all bindings, which hold tables of the catalog as it was.
    pub fn unbind(&self) {
        for shard in &self.shards {
            for entry in &locked(shard).entries {
                entry.parsed.statements.iter().for_each(|statement| statement.keep(None));
            }
        }
    }
}

impl Shard {
    /// What is kept of a text, which becomes the newest.
    fn get(&mut self, hash: u64, text: &str) -> Option<Arc<ParsedText>> {
        let is_it = |entry: &Entry| entry.hash == hash && *entry.text == *text;
        let at = self.entries.iter().position(is_it)?;
        self.entries[..=at].rotate_right(1);
        Some(self.entries[0].parsed.clone())
    }

    /// Keeps a text, unless it has come for the first time.
    fn add(&mut self, hash: u64, text: &str, parsed: &Arc<ParsedText>) {
        let Some(at) = self.seen.iter().position(|seen| *seen == hash) else {
            self.seen.insert(0, hash);
            self.seen.truncate(SEEN);
            return;
        };
        // Another thread may have added it meanwhile.
        if self.get(hash, text).is_none() {
            self.seen.remove(at);
            self.entries.insert(0, Entry { hash, text: text.into(), parsed: parsed.clone() });
            self.entries.truncate(TEXTS);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ParsedText {
    fn new(text: &str) -> Result<ParsedText> {
        let parsed = nacre_sql::parse(text)?.into_iter();
        let statements = parsed.map(|parsed| TextStatement { parsed, kept: Mutex::default() });
        Ok(ParsedText { statements: statements.collect() })
    }
}

impl TextStatement {
    /// The statement, parsed.
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// What was kept last.
    pub fn kept(&self) -> Option<Kept> {
        locked(&self.kept).clone()
    }

    /// Keeps a binding until the catalog changes, or nothing.
    pub fn keep(&self, kept: Option<Kept>) {
        *locked(&self.kept) = kept;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Whether a text is kept.
    fn is_kept(cache: &StatementCache, text: &str) -> bool {
        let hash = hash_bytes(text.as_bytes());
        locked(&cache.shards[hash as usize % SHARDS]).get(hash, text).is_some()
    }

    fn held(cache: &StatementCache) -> usize {
        cache.shards.iter().map(|shard| locked(shard).entries.len()).sum()
    }

    #[test]
    fn a_text_is_kept_from_the_second_time_on_while_it_is_used() {
        let cache = StatementCache::default();
        cache.parse("select 0").unwrap();
        assert!(!is_kept(&cache, "select 0"));
        let often = cache.parse("select 0").unwrap();
        for n in 1..=10 * (SHARDS * TEXTS) {
            let text = format!("select {n}");
            let first = cache.parse(&text).unwrap();
            let second = cache.parse(&text).unwrap();
            assert!(!Arc::ptr_eq(&first, &second));
            assert!(Arc::ptr_eq(&second, &cache.parse(&text).unwrap()));
            assert!(Arc::ptr_eq(&often, &cache.parse("select 0").unwrap()), "after {n} others");
        }
        assert_eq!(held(&cache), SHARDS * TEXTS);
        assert!(!is_kept(&cache, "select 1"));
    }

    #[test]
    fn texts_that_come_once_replace_none() {
        let cache = StatementCache::default();
        let often: Vec<String> = (0..SHARDS).map(|n| format!("select {n} as often")).collect();
        often.iter().chain(&often).for_each(|text| drop(cache.parse(text).unwrap()));
        for n in 0..10 * (SHARDS * SEEN) {
            cache.parse(&format!("select {n}")).unwrap();
        }
        assert!(often.iter().all(|text| is_kept(&cache, text)));
        assert_eq!(held(&cache), often.len());
    }

    #[test]
    fn texts_that_differ_in_a_space_or_a_case_are_different() {
        let cache = StatementCache::default();
        let one = [(); 2].map(|()| cache.parse("select 'a'").unwrap());
        for other in ["select 'A'", "select  'a'", "select 'a';", "select 'a' "] {
            assert!(!Arc::ptr_eq(&one[1], &cache.parse(other).unwrap()), "{other}");
        }
    }

    #[test]
    fn what_does_not_parse_and_what_is_long_is_not_kept() {
        let cache = StatementCache::default();
        let long = format!("select '{}'", "a".repeat(TEXT_BYTES));
        for _ in 0..3 {
            assert!(cache.parse("selec 1").is_err());
            cache.parse(&long).unwrap();
        }
        assert!(!is_kept(&cache, &long));
        assert_eq!(held(&cache), 0);
    }
}
