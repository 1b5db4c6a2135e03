//! `nacre restore` writes a state of the past of a database in blobs to a folder.

use crate::args::RestoreArgs;
use crate::failure::Outcome;
use crate::terminal::{counted, grouped};
use nacre_native::block_on;
use nacredb::{Database, Error, Options};
use std::io::Write;
use std::path::Path;

/// Runs `restore`.
pub fn run(args: &RestoreArgs, out: &mut dyn Write) -> Outcome {
    let blobs = args.client.at(&args.blobs)?;
    let Some(folder) = nacre_native::folder_of(&args.folder)? else {
        let message = format!("{} is not a folder, which a database is restored to", args.folder);
        return Err(Error::unsupported(message).into());
    };
    if nacre_native::has_database(&folder)? {
        return Err(Error::already_exists(format!("{} has a database", args.folder))
            .with_hint("restore to an empty folder")
            .into());
    }
    let is_new = !folder.exists();
    let host = nacre_native::open_url(&args.folder)?;
    let position = match block_on(blobs.restore(&host, args.to)) {
        Ok(position) => position,
        Err(error) => {
            drop(host);
            if is_new && is_bare(&folder) {
                let _ = std::fs::remove_dir_all(&folder);
            }
            return Err(error.into());
        }
    };
    // Removes the files that the state does not name, and shows that it is one.
    let database = block_on(Database::open(host, Options::default()))?;
    let tables = counted(database.inspect()?.len() as u64, "table");
    block_on(database.close())?;
    writeln!(out, "{tables} up to log position {}", grouped(position))?;
    Ok(())
}

/// Whether a folder has nothing but its lock: after a failure halfway its files show what there is.
fn is_bare(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "LOCK"))
    })
}
