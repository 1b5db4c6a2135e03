//! Opens streams of query results.
//!
//! A query outside a transaction begins one for its stream. Inside a transaction, the stream shares
//! its snapshot. If the transaction has uncommitted changes, which only it can see, the rows are
//! computed when the stream is opened, and held in memory or in a temporary file.

use crate::boxed::Boxed;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::stream::{OwnedExecution, RowStream, Running};
use crate::time_slices::TimeSlices;
use crate::transaction::OpenTransaction;
use crate::transactional::check_catalog;
use nacre_exec::{build, build_collected};
use nacre_operator::{Statistics, tables_of};
use nacre_sql::{Plan, RowStatement, Statement};
use nacre_types::plant::{self, Bug};
use nacre_types::{Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The plan of a query whose rows a stream can compute on demand.
pub(crate) fn plan_of(statement: &Statement) -> Option<&Plan> {
    match statement {
        Statement::Rows(RowStatement::Query(plan)) => Some(plan),
        Statement::Rows(_) | Statement::Catalog(_) | Statement::Control(_) => None,
    }
}

/// Opens a stream for a query's plan.
pub(crate) fn open<'a>(
    plan: &'a Plan,
    parameters: Vec<Value>,
    engine: &'a Arc<Engine>,
    open: &'a OpenTransaction,
    settings: &'a Settings,
) -> Boxed<'a, RowStream> {
    Box::pin(opened(plan, parameters, engine, open, settings))
}

async fn opened(
    plan: &Plan,
    parameters: Vec<Value>,
    engine: &Arc<Engine>,
    open: &OpenTransaction,
    settings: &Settings,
) -> Result<RowStream> {
    let started_ns = engine.now_ns();
    let bound_to = engine.store().last_ddl();
    let _slot = engine.slot(settings.cancel_flag()).await?;
    check_catalog(bound_to, engine, open.is_open())?;
    let mut owned = OwnedExecution {
        store: engine.store().clone(),
        parameters,
        statistics: Statistics::default(),
        memory: settings.memory(),
        now_us: engine.host().clock.wall_us(),
        threads: settings.threads(),
        scan_strategy: settings.scan_strategy(),
        tables: Vec::new(),
    };
    let cancelled = {
        let cancel = settings.cancel_flag().clone();
        move || cancel.load(Ordering::Relaxed)
    };
    // Opening a stream does not give way.
    let slices = TimeSlices::unbroken();
    let (operator, transaction) = match open.get() {
        Some(open) if open.has_writes() => {
            let context = owned.execution(&cancelled, &slices).context(open);
            (build_collected(plan, &context)?, open.reader())
        }
        transaction => {
            let transaction = match transaction {
                Some(open) if !plant::is(Bug::StreamNow) => open.reader(),
                _ => open.new_transaction(engine)?,
            };
            owned.tables = tables_of(plan, &transaction)?;
            let operator =
                build(plan, &owned.execution(&cancelled, &slices).context(&transaction))?;
            (operator, transaction)
        }
    };
    let running = Running::new(operator, owned, transaction);
    Ok(RowStream::running(engine, plan.fields(), running, started_ns))
}
