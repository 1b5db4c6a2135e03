//! Time slices: a statement on a thread that has other work to do gives way every few milliseconds.
//!
//! Operators end with an error when their slice is over, and go on when they are called again; the
//! caller awaits the host in between. A write gives way between its batches as well. Nothing else
//! of a statement is suspended: neither its commit nor the sort of rows in memory.

use crate::progress::Reporting;
use nacre_column::Batch;
use nacre_operator::{Context, LocatingOperator, Operator, TimeSlice};
use nacre_table::{Environment, Fetched, RowLocator};
use nacre_types::{Error, Reason, Result};
use std::cell::Cell;
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{self, Poll};

/// The time slices of one statement.
pub(crate) struct TimeSlices {
    /// `None` where statements need not give way.
    length_ns: Option<u64>,
    /// When the current one ends, on the host's monotonic clock.
    ends_ns: Cell<u64>,
    slice: TimeSlice,
    /// Whether what is missed is awaited in the middle; it is an error otherwise.
    awaits: bool,
}

impl TimeSlices {
    /// The slices of a statement that begins now.
    pub fn new(environment: &Environment) -> TimeSlices {
        let length_ns = environment.time_slice_ns();
        let slices = TimeSlices { length_ns, awaits: true, ..TimeSlices::unbroken() };
        slices.begin(environment);
        slices
    }

    /// A single slice without an end, of a statement that its caller does not await: it fails with
    /// what it misses.
    pub fn unbroken() -> TimeSlices {
        TimeSlices {
            length_ns: None,
            ends_ns: Cell::new(u64::MAX),
            slice: TimeSlice::endless(),
            awaits: false,
        }
    }

    /// What operators look at.
    pub fn slice(&self) -> &TimeSlice {
        &self.slice
    }

    /// Begins a slice.
    pub fn begin(&self, environment: &Environment) {
        if let Some(length_ns) = self.length_ns {
            self.ends_ns.set(environment.now_ns().saturating_add(length_ns));
        }
    }

    /// Runs a call that fails with [`is_over`] at the end of the slice.
    pub fn run<T>(&self, call: impl FnOnce() -> T) -> T {
        match self.length_ns {
            None => call(),
            Some(_) => self.slice.until(self.ends_ns.get(), call),
        }
    }

    /// Lets other work run, and begins the next slice.
    ///
    /// Errors: `cancelled`.
    pub async fn give_way(
        &self,
        environment: &Environment,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        environment.give_way().await;
        self.begin(environment);
        if cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Whether the current slice is over.
    pub fn has_ended(&self, environment: &Environment) -> bool {
        self.length_ns.is_some() && environment.now_ns() >= self.ends_ns.get()
    }
}

/// Whether an error is the end of a slice.
pub(crate) fn is_over(error: &Error) -> bool {
    error.reason() == Some(Reason::TimeSliceOver)
}

/// A pause of a statement. Boxed, so that the many places where one may be stay small.
type Pause<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Waits in the middle of a statement: for absent bytes, and for other work of the thread.
pub(crate) struct Waits<'a> {
    pub fetched: Fetched,
    pub slices: &'a TimeSlices,
    pub environment: &'a Environment,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub reporting: Option<Reporting<'a>>,
}

impl Waits<'_> {
    /// Repeats a call until it misses nothing, such as one that builds operators. It does not give way.
    pub async fn call<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match call() {
                Err(error) if error.missing().is_some() => self.fetch(error).await?,
                done => return self.end(done),
            }
        }
    }

    /// The next rows of an operator. Gives way whenever a slice ends.
    pub async fn next(
        &mut self,
        operator: &mut dyn Operator,
        context: &Context<'_>,
    ) -> Result<Option<Batch>> {
        loop {
            match self.slices.run(|| operator.next(context)) {
                Err(error) if error.is_pause() => self.pause(error).await?,
                done => return self.end(done),
            }
        }
    }

    /// Like [`Waits::next`], with the places of the rows.
    pub async fn next_located(
        &mut self,
        operator: &mut dyn LocatingOperator,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        loop {
            match self.slices.run(|| operator.next(context)) {
                Err(error) if error.is_pause() => self.pause(error).await?,
                done => return self.end(done),
            }
        }
    }

    /// Lets other work run, or fetches what was missed.
    #[cold]
    #[inline(never)]
    fn pause(&mut self, error: Error) -> Pause<'_> {
        if let Some(reporting) = &self.reporting {
            reporting.report();
        }
        if !is_over(&error) {
            return self.fetch(error);
        }
        Box::pin(self.slices.give_way(self.environment, self.cancelled))
    }

    #[cold]
    #[inline(never)]
    fn fetch(&mut self, error: Error) -> Pause<'_> {
        match self.slices.awaits {
            true => Box::pin(self.environment.fetch(&mut self.fetched, error, self.cancelled)),
            false => Box::pin(ready(Err(error))),
        }
    }

    /// Ends a call, after which what it had fetched may be evicted.
    fn end<T>(&mut self, done: Result<T>) -> Result<T> {
        self.fetched.release();
        done
    }
}

/// The end of a step of a write: at once, or after a pause.
pub(crate) enum StepEnd<'a> {
    Now(Result<()>),
    After(Pause<'a>),
}

impl<'a> StepEnd<'a> {
    /// Ends a step: fails with `cancelled`, and gives way if the slice is over.
    #[inline(never)]
    pub fn new(
        slices: &'a TimeSlices,
        environment: &'a Environment,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> StepEnd<'a> {
        if cancelled() {
            return StepEnd::Now(Err(Error::cancelled()));
        }
        match slices.has_ended(environment) {
            true => StepEnd::After(Box::pin(slices.give_way(environment, cancelled))),
            false => StepEnd::Now(Ok(())),
        }
    }
}

impl Future for StepEnd<'_> {
    type Output = Result<()>;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Result<()>> {
        match &mut *self {
            StepEnd::Now(end) => Poll::Ready(std::mem::replace(end, Ok(()))),
            StepEnd::After(pause) => pause.as_mut().poll(context),
        }
    }
}
