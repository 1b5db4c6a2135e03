//! Takes a number for a folder that was opened without its blob store (`apart`).

use crate::apart;
use crate::attach::Attach;
use crate::claim::Claim;
use crate::shared::Shared;
use nacre_types::{Error, ErrorKind, Reason, Result};

/// Stops this writer: a newer one has the blobs.
pub(crate) fn stop(shared: &Shared) {
    apart::note_overtaken(&*shared.local);
    shared.fence();
}

/// Takes a number.
///
/// # Errors
/// `in_use` with [`Reason::Fenced`] if another writer has had the blobs since; `unavailable`; otherwise as
/// [`Tier::open`](crate::Tier::open), and nothing is uploaded any more.
pub(crate) async fn join(shared: &Shared) -> Result<()> {
    let attach = Attach::of(shared);
    let token = shared.entropy.next_u64() | 1;
    let taken = match attach.take(token).await {
        Ok(Some(taken)) if !taken.is_filling => taken,
        Ok(_) => return Err(Error::new(ErrorKind::Unavailable, "others take over these blobs")),
        Err(error) => {
            if error.reason() == Some(Reason::Fenced) {
                stop(shared);
            } else if error.kind() != ErrorKind::Unavailable {
                shared.state().damage = Some(error.clone());
            }
            return Err(error);
        }
    };
    let claim = Claim::read(&*shared.local)?.unwrap_or_default();
    claim.replace(&*shared.local, Claim { confirmed: taken.manifest.writer, ..claim })?;
    apart::note(shared, &taken.manifest).ok();
    shared.note_number(taken.manifest, taken.tag);
    Ok(())
}
