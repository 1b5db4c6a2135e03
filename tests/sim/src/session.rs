//! One session of the simulation: runs its operations on the real database, one after another, and
//! reports each result to the model.

use crate::clock::SimClock;
use crate::model::verdict::Answer;
use crate::op::Op;
use crate::op::row::{Column, Row};
use crate::plan::Script;
use crate::prepared::{self, Statements};
use crate::turns::yield_now;
use crate::world::{Cancel, Next, World};
use nacre_testing::Random;
use nacredb::host::Clock;
use nacredb::{Batch, Budget, Database, Error, Result, Rows, Session, TableSchema, Vector};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// Runs all operations.
pub async fn drive(
    world: Rc<RefCell<World>>,
    db: Database,
    clock: Arc<SimClock>,
    number: usize,
    script: Script,
    mut random: Random,
) {
    let mut own = Own {
        session: db.session(),
        stream: None,
        prepared: script.prepares.then(Statements::new),
        cancel_after: None,
    };
    let (mut skipping, mut cancel) = (false, None);
    for op in script.ops {
        if let Op::Cancel { after } = op {
            cancel = Some(after);
            continue;
        }
        own.cancel_after = cancel.take();
        if skipping {
            // Skip the rest of a failed transaction.
            skipping = !matches!(op, Op::Commit | Op::Rollback);
            continue;
        }
        let next = perform(&world, &db, &clock, number, &mut own, op).await;
        let in_transaction = world.borrow().sessions[number].txn.is_some();
        if next == Next::Failed && in_transaction && (random.percent(70) || script.role == "bank") {
            perform(&world, &db, &clock, number, &mut own, Op::Rollback).await;
            skipping = true;
        }
    }
    let open = world.borrow().sessions[number].txn.is_some();
    if open {
        perform(&world, &db, &clock, number, &mut own, Op::Rollback).await;
    }
    world.borrow_mut().sessions[number].op = None;
}

async fn perform(
    world: &Rc<RefCell<World>>,
    db: &Database,
    clock: &SimClock,
    number: usize,
    own: &mut Own,
    op: Op,
) -> Next {
    let cancelled: Arc<AtomicBool> = match op {
        Op::Bulk { .. } => Arc::default(),
        _ => own.session.cancel_flag(),
    };
    let Own { session, stream, prepared, cancel_after } = own;
    {
        let mut world = world.borrow_mut();
        let faults = world.disk.counts().faults;
        let state = &mut world.sessions[number];
        (state.op, state.faults_before) = (Some(op.clone()), faults);
        state.cancel = cancel_after.take().map(|left| Cancel { left, flag: cancelled.clone() });
    }
    yield_now().await;
    {
        // Others may have committed since.
        let mut world = world.borrow_mut();
        let begun = (world.model.latest.clone(), world.model.index);
        world.sessions[number].begun = Some(begun);
        world.sessions[number].seen = None;
    }
    let result = match &op {
        Op::Bulk { table, policy, batches } => {
            finds_table(world, number, table);
            world.borrow_mut().sessions[number].bulk_append = true;
            let rows = LoadedRows { table, policy: *policy, batches };
            let result = load(world, number, session, rows, &cancelled).await;
            result.map(Answer::Affected)
        }
        Op::Maintain { steps } => {
            db.maintain_async(Budget::Steps(*steps)).await.map(|_| Answer::Done)
        }
        Op::SyncLog => db.flush().map(|()| Answer::Done),
        Op::Check => db.check_async().await.map(|findings| {
            let rows = findings.into_iter().map(|finding| vec![finding]).collect();
            Answer::Rows(rows)
        }),
        Op::Sleep { ms } => {
            clock.sleep_until(clock.monotonic_ns() + ms * 1_000_000).await;
            Ok(Answer::Done)
        }
        Op::Open { .. } => session.stream(&op.sql(), &[]).await.map(|rows| {
            *stream = Some(Stream { rows, taken: Vec::new() });
            Answer::Done
        }),
        Op::Take { batches } => take(stream, *batches).await,
        op => {
            let done = match prepared {
                Some(statements) => prepared::run(session, statements, op).await,
                None => None,
            };
            match done {
                Some(result) => result,
                None => session.execute(&op.sql(), &[]).await.map(|result| Answer::of(&result)),
            }
        }
    };
    world.borrow_mut().end(number, &op, result)
}

/// The session's own state.
struct Own {
    session: Session,
    stream: Option<Stream>,
    /// Its prepared statements, if it prepares any.
    prepared: Option<Statements>,
    /// Calls after which the next operation is cancelled.
    cancel_after: Option<u64>,
}

/// What a bulk load loads.
struct LoadedRows<'a> {
    table: &'a str,
    policy: nacredb::OnDuplicate,
    batches: &'a [Vec<Row>],
}

/// A query whose rows are read while other sessions run.
struct Stream {
    rows: Rows,
    taken: Vec<Vec<String>>,
}

/// Reads this many batches. At the end of the stream, returns all rows, sorted.
async fn take(stream: &mut Option<Stream>, batches: usize) -> Result<Answer> {
    for _ in 0..batches {
        let Some(Stream { rows, taken }) = stream else { break };
        match rows.next().await {
            Ok(Some(batch)) => {
                let row =
                    |at| batch.columns.iter().map(|column| column.value(at).to_string()).collect();
                taken.extend((0..batch.rows).map(row));
            }
            Ok(None) => {
                let mut rows = std::mem::take(taken);
                rows.sort();
                *stream = None;
                return Ok(Answer::Rows(rows));
            }
            Err(error) => {
                *stream = None;
                return Err(error);
            }
        }
        yield_now().await;
    }
    Ok(Answer::Done)
}

/// Notes the table that a load finds now.
fn finds_table(world: &Rc<RefCell<World>>, number: usize, name: &str) {
    let mut world = world.borrow_mut();
    let known = world.model.latest.tables.get(name).map(|table| (table.id, table.since));
    world.sessions[number].bulk_table = known;
}

async fn load(
    world: &Rc<RefCell<World>>,
    number: usize,
    session: &mut Session,
    rows: LoadedRows<'_>,
    cancelled: &AtomicBool,
) -> Result<u64> {
    let appender = session.appender(rows.table, rows.policy).await;
    // Looked up again: it may have waited for room before that.
    finds_table(world, number, rows.table);
    let mut appender = appender?;
    for (at, rows) in rows.batches.iter().enumerate() {
        yield_now().await;
        check(cancelled)?;
        // Others run between the steps of what this writes; the call below does not give way.
        if at % 2 == 0 {
            appender.prepare().await?;
        }
        appender.append(&batch(rows, appender.schema()))?;
    }
    yield_now().await;
    world.borrow_mut().sessions[number].bulk_append = false;
    // A load is cancelled by dropping it.
    let mut finish = Box::pin(appender.finish());
    std::future::poll_fn(|context| match check(cancelled) {
        Ok(()) => finish.as_mut().poll(context),
        Err(error) => Poll::Ready(Err(error)),
    })
    .await
}

fn check(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
}

/// Rows with the columns of the table.
fn batch(rows: &[Row], schema: &TableSchema) -> Batch {
    let columns = [Column::K, Column::V, Column::S, Column::W, Column::Z, Column::D];
    let columns = schema
        .columns
        .iter()
        .filter_map(|at| columns.into_iter().find(|column| column.name() == at.name));
    let vector = |column: Column| {
        let values: Vec<_> = rows.iter().map(|row| column.of(row)).collect();
        Arc::new(Vector::from_values(column.data_type(), &values))
    };
    Batch::new(columns.map(vector).collect(), rows.len())
}
