//! Holds back writes while the rowstores exceed their share of memory.

use crate::engine::Engine;
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use nacre_sql::Access;
use nacre_table::{Admission, Asking};
use nacre_types::{Error, Result};

/// Time between two looks at rowstores that other transactions keep full, in nanoseconds.
const ASK_AGAIN_NS: u64 = 10_000_000;
/// The longest wait for flushes to make room, in nanoseconds, and how often room is asked for at
/// least: the clock may jump, as when a machine sleeps.
const LONGEST_WAIT_NS: u64 = 10_000_000_000;
const LEAST_ASKINGS: u32 = 100;

/// Waits until a statement with this access may begin to write: not at all while the rowstores are
/// below their soft limit, then longer the fuller they are and the more rows the session wrote last.
/// Nothing of the statement has happened before, and a failure of background work is not its own.
///
/// Where no flush can make room, other transactions may: outside a transaction, it waits for them
/// as long as for a lock.
///
/// Errors: `limit` if there is still no room; `unavailable` if too much waits to leave this machine; `cancelled`.
pub(crate) async fn admit_write(
    access: Access,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<()> {
    // A change of the catalog may be what makes room.
    if access != Access::Writes {
        return Ok(());
    }
    let in_transaction = open.is_open();
    let timeout_ns = engine.defaults().lock_timeout_ms.saturating_mul(1_000_000);
    let for_others_ns = if in_transaction { 0 } else { timeout_ns };
    let began_ns = engine.now_ns();
    let has_waited = |ns: u64| engine.now_ns() >= began_ns.saturating_add(ns);
    let rows = open.take_unpaid_rows();
    let mut askings = 0;
    loop {
        askings += 1;
        let is_last = askings > LEAST_ASKINGS && has_waited(LONGEST_WAIT_NS);
        let asking = Asking { rows, is_last };
        let admitted = engine.host().store.admit_write();
        let answer = admitted.and_then(|()| engine.store().admit_write(asking));
        let delay_ns = match &answer {
            Ok(Admission::Granted) => return Ok(()),
            Ok(Admission::Delayed(ns) | Admission::Full(ns)) => *ns,
            Err(_) if !is_last && !has_waited(for_others_ns) => ASK_AGAIN_NS,
            Err(_) => return answer.map(|_| ()),
        };
        engine.relieve();
        let until_ns = engine.now_ns().saturating_add(delay_ns);
        engine.host().clock.sleep_until(until_ns).await;
        if settings.is_cancelled() {
            return Err(Error::cancelled());
        }
        if matches!(answer, Ok(Admission::Delayed(_))) {
            return Ok(());
        }
    }
}
