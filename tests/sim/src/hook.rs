//! Lets the simulated disk notify this thread's scheduler before a call, so that it can run other
//! sessions in the middle of the one making the call.

use crate::disk::{Call, Class};
use std::cell::RefCell;
use std::rc::Rc;

/// Receives the notifications.
pub trait Hook {
    /// A call that may take long is about to be made; other sessions may run meanwhile.
    fn before(&self, call: Call, class: Class);
    /// A sync of the log has succeeded.
    fn log_synced(&self);
}

thread_local! {
    static HOOK: RefCell<Option<Rc<dyn Hook>>> = const { RefCell::new(None) };
}

/// Sets the callback of this thread.
pub fn set(hook: Option<Rc<dyn Hook>>) {
    HOOK.with(|slot| *slot.borrow_mut() = hook);
}

pub(crate) fn before(call: Call, class: Class) {
    if let Some(hook) = current() {
        hook.before(call, class);
    }
}

pub(crate) fn log_synced() {
    if let Some(hook) = current() {
        hook.log_synced();
    }
}

fn current() -> Option<Rc<dyn Hook>> {
    HOOK.with(|slot| slot.borrow().clone())
}
