//! Executions that belong to no statement: what a commit, or a change of the catalog, has to read.

use crate::engine::Engine;
use crate::execution::{Execution, ExecutionParts, InsertPath};
use crate::settings::Settings;
use crate::time_slices::TimeSlices;
use nacre_operator::{Memory, Statistics};

/// What such an execution refers to.
pub(crate) struct Aside {
    slices: TimeSlices,
    statistics: Statistics,
    memory: Memory,
}

impl Aside {
    pub fn new(engine: &Engine, settings: &Settings) -> Aside {
        let slices = TimeSlices::new(engine.store().environment());
        Aside { slices, statistics: Statistics::default(), memory: settings.memory() }
    }

    /// The execution. `cancelled` tells whether it is to end.
    pub fn execution<'a>(
        &'a self,
        engine: &'a Engine,
        settings: &Settings,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Execution<'a> {
        let parts = ExecutionParts {
            store: engine.store(),
            parameters: &[],
            statistics: &self.statistics,
            memory: &self.memory,
            now_us: engine.host().clock.wall_us(),
            cancelled,
            slices: &self.slices,
            reporting: None,
            uploads: engine.uploads().map(|uploads| &**uploads),
            threads: settings.threads(),
            scan_strategy: settings.scan_strategy(),
            load_end: None,
        };
        Execution::new(parts, InsertPath::Rowstore)
    }
}
