//! The 22 queries of TPC-H on the same data as DuckDB, interleaved, with one thread and with two. A
//! query that does not run is named and omitted from the means; the number of queries that ran is
//! printed.

use crate::duckdb::{self, DuckDb};
use crate::measure::{Folder, Outcome, check, median, timed};
use crate::options::Options;
use crate::tpch_data::load_both;
use nacre_native::block_on;
use nacredb::Database;
use std::path::{Path, PathBuf};

pub fn run(options: &Options) -> Outcome<()> {
    let scale: f64 = options.get("scale", 1.0)?;
    let rounds: usize = options.get("rounds", 5)?;
    let queries = read_queries(Path::new(
        options.text("queries").unwrap_or("../shared/corpora/tpch/queries"),
    ))?;
    let folder = Folder::new("tpch")?;
    let host = nacre_native::open_folder(&folder.join("nacre"))?;
    // Large enough to keep the data in memory once it is warm; DuckDB may use most of the
    // machine's.
    let settings = nacredb::Options { cache_bytes: 4 << 30, ..nacredb::Options::default() };
    let db = block_on(Database::open(host, settings))?;
    let mut session = db.session();
    let peer = DuckDb::open(&folder.join("duckdb.db"), 2)?;
    let connection = peer.connect()?;
    println!("loading TPC-H at scale {scale} into Nacre and DuckDB {}", duckdb::version()?);
    for (name, _) in load_both(scale, &mut session, &connection)? {
        block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
    }
    connection.execute("checkpoint")?;

    println!(
        "{:6} {:>7} {:>10} {:>10} {:>7}",
        "query", "threads", "nacre ms", "duckdb ms", "ratio"
    );
    let mut ratios: [Vec<f64>; 2] = Default::default();
    let mut left_out = Vec::new();
    for (name, sql) in &queries {
        for threads in [1, 2] {
            session.set_threads(threads);
            connection.execute(&format!("set threads to {threads}"))?;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let mut refused = None;
            // The first round warms up.
            for round in 0..=rounds {
                let (our_rows, our_seconds) =
                    match timed(|| Ok(block_on(session.execute(sql, &[]))?.rows() as u64)) {
                        Ok(measured) => measured,
                        Err(error) => {
                            refused = Some(error);
                            break;
                        }
                    };
                let (their_rows, their_seconds) = timed(|| connection.execute(sql))?;
                if our_rows != their_rows {
                    return Err(format!("{name}: {our_rows} rows, DuckDB has {their_rows}").into());
                }
                if round > 0 {
                    ours.push(our_seconds * 1e3);
                    theirs.push(their_seconds * 1e3);
                }
            }
            if let Some(error) = refused {
                println!("{name:6} does not run: {error}");
                left_out.push(name.as_str());
                break;
            }
            let (ours, theirs) = (median(&mut ours), median(&mut theirs));
            println!("{name:6} {threads:>7} {ours:>10.1} {theirs:>10.1} {:>7.2}", ours / theirs);
            ratios[threads - 1].push(ours / theirs);
        }
    }
    check(&db)?;
    let worst = ratios.iter().flatten().copied().fold(f64::NAN, f64::max);
    println!(
        "{} of {} queries ran; left out: {}",
        ratios[0].len(),
        queries.len(),
        left_out.join(" ")
    );
    println!(
        "tpch: geomean_ratio1={:.2} geomean_ratio2={:.2} worst={worst:.2}",
        geomean(&ratios[0]),
        geomean(&ratios[1])
    );
    Ok(())
}

fn geomean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// Returns every `.sql` file of a folder, in order of name.
fn read_queries(folder: &Path) -> Outcome<Vec<(String, String)>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let read = |path: &PathBuf| -> Outcome<(String, String)> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, std::fs::read_to_string(path)?))
    };
    paths.iter().map(read).collect()
}
