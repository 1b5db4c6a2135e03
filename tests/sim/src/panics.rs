//! A panic while running a seed is a finding: keeps its message for the report instead of printing
//! it.

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Captures panics of all threads from now on.
pub fn keep() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        LAST.with(|last| *last.borrow_mut() = text);
    }));
}

/// The last panic of this thread.
pub fn last() -> String {
    LAST.with(|last| last.borrow().clone())
}
