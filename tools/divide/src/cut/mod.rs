//! Takes code out of a linked module that nothing needs, but that the compiler cannot know to be
//! unneeded: functions that a list names get a body that does nothing, or that calls a smaller
//! function. What only they reach, through calls, the table or constants, is taken out with them.
//! `direct` makes calls of a trait's methods direct where it has one implementation.

mod direct;
mod links;

use crate::parsed::{Parsed, Result};
use direct::Bodies;
use links::{Links, Reached};
use wasm_encoder::{CodeSection, Function, Instruction, MemArg, Module, RawSection};
use wasmparser::{FuncType, Parser, Payload, ValType};

/// What a function of the list does instead.
#[derive(Clone, Copy)]
enum Instead {
    /// Writes nothing, for an implementation of `Display`.
    Silent,
    /// Answers the empty span, for an implementation of the parser's `Spanned`.
    Nowhere,
    /// Traps: nothing calls it.
    Never,
    /// Calls another function, which has the same type in Rust.
    Calls(u32),
}

impl Instead {
    /// Reads `WORD NAME`, or `calls NAME => OTHER`. Returns it with the functions of the name.
    ///
    /// `once NAME` is for a function that the compiler has made in several crates: the smallest one
    /// stays, and the others call it.
    fn read(line: &str, links: &Links, parsed: &Parsed<'_>) -> Result<(Instead, Vec<u32>)> {
        let (word, name) = line.split_once(' ').ok_or_else(|| format!("`{line}` has no name"))?;
        let instead = match word {
            "silent" => Instead::Silent,
            "nowhere" => Instead::Nowhere,
            "never" => Instead::Never,
            "calls" => {
                let (name, other) =
                    name.split_once(" => ").ok_or_else(|| format!("`{line}` calls nothing"))?;
                let [other] = links.named(other)?[..] else {
                    return Err(format!("several functions are named {other}").into());
                };
                return Ok((Instead::Calls(other), links.named(name)?));
            }
            "once" => {
                let all = links.named(name)?;
                let size = |function: &u32| parsed.body(*function).range().len();
                let kept = all.iter().copied().min_by_key(size).filter(|_| all.len() > 1);
                let kept = kept.ok_or_else(|| format!("one function is named {name}"))?;
                let others = all.into_iter().filter(|function| *function != kept);
                return Ok((Instead::Calls(kept), others.collect()));
            }
            other => return Err(format!("{other} is not what a function can do instead").into()),
        };
        Ok((instead, links.named(name)?))
    }

    /// Whether it can stand for functions of a type.
    fn fits(self, ty: &FuncType, parsed: &Parsed<'_>) -> bool {
        let addresses = &[ValType::I32, ValType::I32];
        match self {
            Instead::Silent => ty.params() == addresses && ty.results() == [ValType::I32],
            Instead::Nowhere => ty.params() == addresses && ty.results().is_empty(),
            Instead::Never => true,
            Instead::Calls(other) => ty == parsed.type_of(other),
        }
    }

    fn body(self, ty: &FuncType) -> Vec<u8> {
        let mut body = Function::new([]);
        match self {
            Instead::Calls(other) => {
                for parameter in 0..ty.params().len() as u32 {
                    body.instruction(&Instruction::LocalGet(parameter));
                }
                body.instruction(&Instruction::Call(other));
            }
            Instead::Silent => {
                body.instruction(&Instruction::I32Const(0));
            }
            // The first parameter is where the result goes: two places of two numbers.
            Instead::Nowhere => {
                for offset in [0, 8, 16, 24] {
                    body.instruction(&Instruction::LocalGet(0));
                    body.instruction(&Instruction::I64Const(0));
                    body.instruction(&Instruction::I64Store(MemArg {
                        offset,
                        align: 3,
                        memory_index: 0,
                    }));
                }
            }
            Instead::Never => {
                body.instruction(&Instruction::Unreachable);
            }
        }
        body.instruction(&Instruction::End);
        body.into_raw_body()
    }
}

/// What was taken out.
pub struct Cut {
    pub module: Vec<u8>,
    pub functions: usize,
    pub code: usize,
    pub data: usize,
}

/// Takes out what a list names, one function a line: what it does instead, and its name. A line
/// may also name an implementation of a trait, for [`direct::direct`]. Lines that begin with `#`
/// say why.
///
/// Every name must be of a function whose type is as expected, so that the list stays true.
pub fn cut(bytes: &[u8], list: &str) -> Result<Cut> {
    let parsed = Parsed::new(bytes)?;
    let links = Links::new(bytes, &parsed)?;
    let mut instead: Vec<Option<Instead>> = vec![None; parsed.functions.len()];
    let mut listed = Vec::new();
    let mut changed = Bodies::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(line) = line.strip_prefix("direct ") {
            changed.extend(direct::direct(bytes, &parsed, &links, line)?);
            continue;
        }
        let (what, functions) = Instead::read(line, &links, &parsed)?;
        for function in functions {
            let ty = parsed.type_of(function);
            if !what.fits(ty, &parsed) {
                return Err(format!("{} has the type {ty:?}", links.name(function)).into());
            }
            instead[function as usize] = Some(what);
            listed.push(function);
        }
    }
    let called = instead.iter().flatten().filter_map(|what| match what {
        Instead::Calls(other) => Some(*other),
        _ => None,
    });
    let reached = links.reached(&parsed, &listed, called);
    let is_unneeded = |function: u32| {
        let is_copy = matches!(instead[function as usize], Some(Instead::Calls(other))
            if links.name(other) == links.name(function));
        // That other copies are reached may depend on further lines.
        !is_copy && !reached.functions[function as usize]
    };
    if let Some(function) = listed.iter().find(|function| is_unneeded(**function)) {
        return Err(format!("{} is not reached", links.name(*function)).into());
    }
    rewrite(bytes, &parsed, &links, &reached, &instead, &changed)
}

/// The module without the bodies of functions and the bytes of constants that are not reached.
fn rewrite(
    bytes: &[u8],
    parsed: &Parsed<'_>,
    links: &Links,
    reached: &Reached,
    instead: &[Option<Instead>],
    changed: &Bodies,
) -> Result<Cut> {
    let (mut functions, mut code_bytes, mut data_bytes) = (0, 0, 0);
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        match &payload {
            Payload::CustomSection(custom)
                if custom.name() == "linking" || custom.name().starts_with("reloc.") => {}
            Payload::CodeSectionStart { .. } => {
                let mut code = CodeSection::new();
                for (function, body) in (parsed.imported()..).zip(&parsed.bodies) {
                    let old = &bytes[body.range()];
                    let new = match instead[function as usize] {
                        Some(what) => what.body(parsed.type_of(function)),
                        None if reached.functions[function as usize] => {
                            code.raw(changed.get(&function).map_or(old, Vec::as_slice));
                            continue;
                        }
                        None => Instead::Never.body(parsed.type_of(function)),
                    };
                    functions += 1;
                    code_bytes += old.len();
                    code.raw(&new);
                }
                module.section(&code);
            }
            Payload::DataSection(_) => {
                let mut data = bytes[range.clone()].to_vec();
                for at in links.unneeded(parsed, reached) {
                    data[at - range.start] = 0;
                    data_bytes += 1;
                }
                module.section(&RawSection { id, data: &data });
            }
            _ => {
                module.section(&RawSection { id, data: &bytes[range] });
            }
        }
    }
    Ok(Cut { module: module.finish(), functions, code: code_bytes, data: data_bytes })
}

#[cfg(test)]
mod tests;
