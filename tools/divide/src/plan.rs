//! Which module each function is in, and how it is reached from the other one.

use crate::parsed::{Parsed, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The import that loads the second module.
pub const LOADS_MORE: &str = "loadMore";

/// Bytes up to which a function is small. Measured: 40 make both modules 2 KB smaller with Brotli, 100 3, 250 4, and
/// the first one 6, 17 and 39 KB larger.
pub const SMALL: usize = 200;

/// Where each function is.
pub struct Plan {
    /// Functions with a body in the first module, ascending.
    pub needed: BTreeSet<u32>,
    /// Functions in the second module, ascending.
    pub rest: Vec<u32>,
    /// Functions of the second module that have a stub in the first, with their places in the table.
    /// Those of one type, and their places, follow each other: their stubs differ little.
    pub stubs: Vec<(u32, u32)>,
    /// Functions of the first module, or its imports, that the second calls. Those with most calls
    /// come first: their numbers are short.
    pub shared: Vec<u32>,
    /// The import that loads the second module.
    pub loads_more: u32,
    /// Number of places in the table.
    pub places: u32,
}

impl Plan {
    pub fn new(parsed: &Parsed<'_>, needed: &[u32]) -> Result<Plan> {
        let all = parsed.imported()..parsed.functions.len() as u32;
        let needed: BTreeSet<u32> = needed.iter().copied().collect();
        if let Some(other) = needed.iter().find(|function| !all.contains(function)) {
            return Err(format!("function {other} is needed, and has no body").into());
        }
        let rest: Vec<u32> = all.filter(|function| !needed.contains(function)).collect();
        let in_rest = |function: &u32| *function >= parsed.imported() && !needed.contains(function);
        let loads_more = parsed.imports.iter().position(|import| import.name == LOADS_MORE);
        let loads_more = loads_more.ok_or("no import loads the second module")? as u32;

        let mut reached: BTreeSet<u32> = BTreeSet::new();
        for function in &needed {
            reached.extend(parsed.calls(*function)?.into_iter().filter(in_rest));
        }
        for export in &parsed.exports {
            if export.kind == wasmparser::ExternalKind::Func && in_rest(&export.index) {
                reached.insert(export.index);
            }
        }
        reached.extend(parsed.start.filter(in_rest));
        let mut stubs = BTreeMap::new();
        for (place, function) in parsed.places()? {
            if in_rest(&function) {
                stubs.entry(function).or_insert(place);
            }
        }
        let table = parsed.tables.first().ok_or("the module has no table")?;
        let mut places = u32::try_from(table.initial)?;
        let mut reached: Vec<u32> = reached.into_iter().collect();
        reached.sort_by_key(|function| parsed.functions[*function as usize]);
        for function in reached {
            stubs.entry(function).or_insert_with(|| {
                places += 1;
                places - 1
            });
        }
        let mut stubs: Vec<(u32, u32)> = stubs.into_iter().collect();
        stubs.sort_by_key(|(function, place)| (parsed.functions[*function as usize], *place));
        let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
        for function in &rest {
            for called in parsed.calls(*function)?.into_iter().filter(|called| !in_rest(called)) {
                *calls.entry(called).or_default() += 1;
            }
        }
        let mut shared: Vec<u32> = calls.keys().copied().collect();
        shared.sort_by_key(|function| Reverse(calls[function]));
        Ok(Plan { needed, rest, stubs, shared, loads_more, places })
    }
}

/// Adds small functions to those that are needed, if the first module would have stubs of them, and none of
/// what they call: beside functions like them they compress better than stubs.
pub fn take_small(parsed: &Parsed<'_>, small: usize, needed: &mut BTreeSet<u32>) -> Result<()> {
    let imported = parsed.imported();
    loop {
        let is_rest = |function: &u32| *function >= imported && !needed.contains(function);
        let mut stubs: BTreeSet<u32> =
            parsed.places()?.into_iter().map(|(_, f)| f).filter(is_rest).collect();
        for function in needed.iter() {
            stubs.extend(parsed.calls(*function)?.into_iter().filter(is_rest));
        }
        let mut taken = Vec::new();
        for function in &stubs {
            let range = parsed.body(*function).range();
            let known = |called: &u32| !is_rest(called) || stubs.contains(called);
            if range.end - range.start <= small && parsed.calls(*function)?.iter().all(known) {
                taken.push(*function);
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        needed.extend(taken);
    }
}

/// The name that something of the first module has for the second.
pub fn name(kind: char, number: usize) -> String {
    format!("{kind}{number:x}")
}
