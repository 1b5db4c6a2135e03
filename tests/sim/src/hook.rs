//! Where the simulated disk tells the scheduler of this thread that a call is about to happen, so that it can let
//! other sessions run in the midst of the one that makes the call.

use crate::disk::{Call, Class};
use std::cell::RefCell;
use std::rc::Rc;

/// Who wants to be told.
pub trait Hook {
    /// A call that may take long is about to be made; others may run meanwhile.
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
