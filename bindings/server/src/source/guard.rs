//! Turns panics of the Parquet and Arrow readers, which occur on some damaged files, into errors.

use nacredb::{Error, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and turns a panic into a `corrupt` error, without printing it. After a panic the
/// caller must not use the reader again.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.map_err(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(payload.downcast_ref::<&str>().copied());
        Error::corrupt(format!("damaged structure: {}", message.unwrap_or("unreadable")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::FileFormat;
    use crate::source::tests::{schema, temp};
    use crate::source::{Input, TextOptions, open};
    use nacre_native::{block_on, memory_host};
    use nacredb::{DataType, Database, ErrorKind, Options};

    #[test]
    fn a_panic_is_an_error_and_does_not_affect_the_next_call() {
        let error = guarded(|| panic!("offset {}", 7)).unwrap_err();
        assert_eq!(
            (error.kind(), error.message().contains("offset 7")),
            (ErrorKind::Corrupt, true)
        );
        assert_eq!(guarded(|| 5).unwrap(), 5);
    }

    #[test]
    fn damaged_arrow_data_never_panics() {
        let sql =
            "select * from (values (1, 'a', 1.5), (2, null, null), (3, 'ccc', 2.5)) as t(n, s, d)";
        let db = block_on(Database::open(memory_host(), Options::default())).unwrap();
        let bytes = block_on(db.session().execute(sql, &[])).unwrap().to_arrow_ipc().unwrap();
        let table = schema(&[
            ("n", DataType::Int32),
            ("s", DataType::TEXT),
            ("d", DataType::Decimal { precision: 2, scale: 1 }),
        ]);
        let mut refused = 0;
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            let file = temp(".arrow", &bytes);
            let read = || {
                let mut source =
                    open(&Input::open(&file.0)?, FileFormat::Arrow, &TextOptions::default())?;
                source.bind(&table)?;
                while source.next()?.is_some() {}
                Ok::<_, Error>(())
            };
            refused += usize::from(read().is_err());
        }
        assert!(refused > 50, "{refused} of {}", bytes.len());
    }
}
