//! `nacre branch` makes a branch of a database in blobs, or drops one.

use crate::args::{BranchArgs, as_of};
use crate::failure::Outcome;
use crate::terminal::grouped;
use nacre_native::{block_on, memory_host};
use nacredb::{AsOf, Error};
use std::io::Write;

/// Runs `branch`.
pub fn run(args: &BranchArgs, out: &mut dyn Write) -> Outcome {
    let host = memory_host();
    let blobs_at = |url: &str| args.client.at(url);
    match (args.drop, &args.to) {
        (true, None) => {
            let blobs = blobs_at(&args.url)?;
            block_on(blobs.drop_branch(&args.url))?;
            writeln!(out, "dropped {}", args.url)?;
            Ok(())
        }
        (false, Some(to)) => {
            let (url, at) = parts(&args.url);
            let (from, blobs) = (blobs_at(url)?, blobs_at(to)?);
            let position = block_on(from.branch(&host, url, (&blobs, to), at))?;
            writeln!(out, "{to} begins at log position {}", grouped(position))?;
            Ok(())
        }
        (true, Some(_)) => Err(Error::unsupported("a second URL with --drop").into()),
        (false, None) => Err(Error::unsupported("a branch without the URL of its place").into()),
    }
}

/// A URL and the point in time after an `@` at its end.
fn parts(url: &str) -> (&str, Option<AsOf>) {
    match url.rsplit_once('@').map(|(url, at)| (url, as_of(at))) {
        Some((url, Ok(at))) => (url, Some(at)),
        _ => (url, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_may_follow_the_url() {
        assert_eq!(parts("s3://b/p@4096"), ("s3://b/p", Some(AsOf::Position(4_096))));
        assert_eq!(parts("s3://b/p"), ("s3://b/p", None));
        assert_eq!(parts("file:///me@home/db"), ("file:///me@home/db", None));
        assert_eq!(parts("gs://b/p@1970-01-01").1, Some(AsOf::Time(0)));
    }
}
