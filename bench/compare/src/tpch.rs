//! The 22 queries of TPC-H on the same data as DuckDB.

use crate::beside_duckdb::{Beside, Compare, Query, geomean, worst};
use crate::duckdb;
use crate::measure::Outcome;
use crate::options::Options;
use crate::tpch_data::load_both;
use std::path::{Path, PathBuf};

pub fn run(options: &Options) -> Outcome<()> {
    let scale: f64 = options.get("scale", 1.0)?;
    let rounds: usize = options.get("rounds", 5)?;
    let queries = read_queries(Path::new(
        options.text("queries").unwrap_or("../shared/corpora/tpch/queries"),
    ))?;
    let mut beside = Beside::open("tpch")?;
    println!("loading TPC-H at scale {scale} into Nacre and DuckDB {}", duckdb::version()?);
    let loaded = load_both(scale, &mut beside.session, &beside.connection)?;
    beside.settle(&loaded.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    let ratios = beside.compare(&queries, rounds, Compare::Counts)?;
    println!(
        "tpch: geomean_ratio1={:.2} geomean_ratio2={:.2} worst={:.2}",
        geomean(&ratios[0]),
        geomean(&ratios[1]),
        worst(&ratios)
    );
    Ok(())
}

/// Returns every `.sql` file of a folder, in order of name.
fn read_queries(folder: &Path) -> Outcome<Vec<Query>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let read = |path: &PathBuf| -> Outcome<Query> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, std::fs::read_to_string(path)?))
    };
    paths.iter().map(read).collect()
}
