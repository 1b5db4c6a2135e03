//! Calls of a trait's methods through its vtable, made calls of the functions themselves where the
//! module has one implementation of the trait. The compiler cannot know that there is one; once a
//! call is direct, `wasm-opt` sees which methods answer a constant, and takes out what depends on
//! another answer.

use super::links::Links;
use crate::parsed::{Parsed, Result};
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::{Encode, Instruction};
use wasmparser::Operator;

/// New bytes of functions, which are as long as the old ones.
pub type Bodies = BTreeMap<u32, Vec<u8>>;

/// Reads `IMPLEMENTATION in CRATE`, such as `<a::Only as b::Trait> in b`: makes the calls of the
/// trait direct in the functions of a crate. Returns the functions that change.
///
/// What is called is known by the offset at which the code reads it. Offsets at which another
/// constant has a function too, such as the vtable of another trait, are left as they are.
pub fn direct(bytes: &[u8], parsed: &Parsed<'_>, links: &Links, line: &str) -> Result<Bodies> {
    let (implementation, of_crate) =
        line.split_once(" in ").ok_or_else(|| format!("`{line}` is in no crate"))?;
    let methods = methods(links, implementation)?;
    let mut bodies = Bodies::new();
    for (function, body) in (parsed.imported()..).zip(&parsed.bodies) {
        if !is_of(links.name(function), of_crate) {
            continue;
        }
        let start = body.range().start;
        let mut new = bytes[body.range()].to_vec();
        let mut changed = false;
        let mut load = None;
        for operator in body.get_operators_reader()?.into_iter_with_offsets() {
            let (operator, at) = operator?;
            let method = match (&operator, load.take()) {
                (Operator::I32Load { memarg }, _) => {
                    load = methods.get(&memarg.offset).map(|method| (at, *method));
                    None
                }
                (Operator::CallIndirect { type_index, .. }, Some((from, method))) => {
                    let ty = &parsed.types[*type_index as usize];
                    (ty == parsed.type_of(method)).then_some((from, method))
                }
                _ => None,
            };
            let Some((from, method)) = method else { continue };
            changed = true;
            let to = after_call(bytes, at)?;
            put(&mut new[from - start..to - start], method)?;
        }
        if changed {
            bodies.insert(function, new);
        }
    }
    if bodies.is_empty() {
        return Err(format!("no function of {of_crate} calls {implementation}").into());
    }
    Ok(bodies)
}

/// The functions of an implementation's vtable, by offsets at which no other constant has one.
fn methods(links: &Links, implementation: &str) -> Result<BTreeMap<u64, u32>> {
    let named = format!("{implementation}::");
    let is_method = |(_, function): &&(usize, u32)| links.name(*function).starts_with(&named);
    let (_, of_trait) =
        named.split_once(" as ").ok_or_else(|| format!("{named} is of no trait"))?;
    let of_trait = format!(" as {of_trait}");
    let is_other = |name: &str| name.contains(&of_trait) && !name.starts_with(&named);
    let tables: Vec<Vec<(usize, u32)>> = links.tables().collect();
    let all = tables.iter().flatten().map(|(_, function)| links.name(*function));
    if let Some(other) = all.into_iter().find(|name| is_other(name)) {
        return Err(format!("{implementation} is not the only one: there is {other}").into());
    }
    // Functions with the same code are one, so others' vtables may have some of its functions.
    let own = |table: &usize| tables[*table].iter().filter(is_method).count();
    let vtable = (0..tables.len()).max_by_key(own).filter(|table| own(table) > 0);
    let vtable = vtable.ok_or_else(|| format!("no vtable has functions of {implementation}"))?;
    let others = tables.iter().enumerate().filter(|(table, _)| *table != vtable);
    let taken: BTreeSet<usize> = others.flat_map(|(_, table)| table).map(|(at, _)| *at).collect();
    let own = tables[vtable].iter().filter(|(at, _)| !taken.contains(at));
    Ok(own.map(|(at, function)| (*at as u64, *function)).collect())
}

/// Whether a function is one of a crate's, or an instance of one.
fn is_of(name: &str, of_crate: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    path.strip_prefix(of_crate).is_some_and(|rest| rest.starts_with("::"))
}

/// The position after an indirect call: its operator, and the numbers of its type and its table.
fn after_call(bytes: &[u8], at: usize) -> Result<usize> {
    let mut end = at + 1;
    for _ in 0..2 {
        let length = bytes[end..].iter().position(|byte| byte & 0x80 == 0);
        end += length.ok_or("a number without an end")? + 1;
    }
    Ok(end)
}

/// Replaces reading a function from a vtable and calling it by a call. The vtable's address is on
/// the stack.
fn put(place: &mut [u8], method: u32) -> Result<()> {
    let mut call = Vec::new();
    Instruction::Drop.encode(&mut call);
    Instruction::Call(method).encode(&mut call);
    place.fill(NOP);
    let start = place.get_mut(..call.len()).ok_or("a call is longer than the indirect one")?;
    start.copy_from_slice(&call);
    Ok(())
}

const NOP: u8 = 0x01;
