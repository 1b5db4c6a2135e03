//! `nacre tpch`: generates the eight TPC-H tables directly into the engine.

mod tables;

use crate::args::TpchArgs;
use crate::database::{self, Missing};
use crate::failure::Outcome;
use crate::terminal::{self, Progress};
use nacre_native::block_on;
use nacredb::{Database, Error, ErrorKind, OnDuplicate, Session};
use std::io::Write;
use std::time::Instant;

/// Runs the command.
pub fn run(args: &TpchArgs, out: &mut dyn Write) -> Outcome {
    let database = database::open(
        &args.url,
        Missing::Create,
        database::options_of(&args.url, &args.options)?,
    )?;
    let outcome = generate(&database, args.scale, out);
    database::close(&database, outcome)
}

fn generate(database: &Database, scale: f64, out: &mut dyn Write) -> Outcome {
    let mut session = database.session();
    let tables = tables::all(scale);
    for table in &tables {
        if exists(&mut session, table.name) {
            return Err(Error::already_exists(format!("table {} already exists", table.name))
                .with_hint("generate into an empty database, or drop the table first")
                .with_table(table.name)
                .into());
        }
    }
    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
    make(&mut session, tables, out).inspect_err(|_| {
        // Leave all tables or none.
        for name in names {
            let _ = database::execute(&mut session, &format!("drop table if exists {name}"), &[]);
        }
    })
}

fn make(session: &mut Session, tables: Vec<tables::Table>, out: &mut dyn Write) -> Outcome {
    let started = Instant::now();
    let mut total = 0;
    for table in tables {
        let name = table.name;
        let one = Instant::now();
        database::execute(session, table.ddl, &[])?;
        let loaded = load(session, table)?;
        total += loaded;
        let elapsed = one.elapsed();
        let rate = terminal::rate(loaded, elapsed.as_secs_f64());
        // A closed standard output must not stop the generation of the remaining tables.
        let _ = writeln!(
            out,
            "{name:10} {:>14} {:>10} {rate:>20}",
            terminal::rows(loaded),
            terminal::duration(elapsed)
        )
        .and_then(|()| out.flush());
    }
    let _ = writeln!(
        out,
        "{:10} {:>14} {:>10}",
        "total",
        terminal::rows(total),
        terminal::duration(started.elapsed())
    );
    Ok(())
}

/// Whether the table exists, found by running an empty query over it.
fn exists(session: &mut Session, table: &str) -> bool {
    database::execute(session, &format!("select 1 from {table} limit 0"), &[]).is_ok()
}

fn load(session: &mut Session, table: tables::Table) -> Outcome<u64> {
    let progress = Progress::new(table.name, table.units);
    let mut appender = block_on(session.appender(table.name, OnDuplicate::Error))?;
    let types: Vec<_> = appender.schema().types();
    let mut rows = 0;
    let mut batches = table.batches;
    while let Some(produced) = batches.next_batch(&types) {
        appender.append(&produced.batch)?;
        rows += produced.batch.rows as u64;
        progress.update(produced.units, rows);
    }
    progress.phase("writing");
    block_on(appender.finish()).map_err(|error| match error.kind() {
        // With few suppliers, the generator's formula assigns one supplier to a part more than
        // once.
        ErrorKind::Constraint => error
            .with_hint(
                "TPC-H generates duplicate keys at some scale factors below 0.024; 0.01 works",
            )
            .into(),
        _ => error.into(),
    })
}
