//! The module with the rest of the functions. It imports everything from the first one.

use crate::parsed::{Copier, Parsed, Result};
use crate::plan::{Plan, name};
use crate::sections;
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, Elements, EntityType, FunctionSection, ImportSection,
    Module,
};

/// The module that the imports name.
const FIRST: &str = "a";

pub fn more(parsed: &Parsed<'_>, plan: &Plan) -> Result<Vec<u8>> {
    let mut numbers: Vec<Option<u32>> = vec![None; parsed.functions.len()];
    for (number, function) in (0..).zip(plan.shared.iter().chain(&plan.rest)) {
        numbers[*function as usize] = Some(number);
    }
    let mut copier = Copier { functions: &numbers };
    let mut module = Module::new();
    module.section(&sections::types(parsed)?);
    module.section(&imports(parsed, plan, &mut copier)?);
    let mut functions = FunctionSection::new();
    for function in &plan.rest {
        functions.function(parsed.functions[*function as usize]);
    }
    module.section(&functions);
    module.section(&elements(plan, &mut copier)?);
    let mut code = CodeSection::new();
    for function in &plan.rest {
        copier.parse_function_body(&mut code, parsed.body(*function).clone())?;
    }
    module.section(&code);
    Ok(module.finish())
}

fn imports(parsed: &Parsed<'_>, plan: &Plan, copier: &mut Copier<'_>) -> Result<ImportSection> {
    let mut imports = ImportSection::new();
    for (at, function) in plan.shared.iter().enumerate() {
        let ty = EntityType::Function(parsed.functions[*function as usize]);
        imports.import(FIRST, &name('f', at), ty);
    }
    for (at, table) in parsed.tables.iter().enumerate() {
        let mut table = copier.table_type(*table)?;
        // The first module may have let it grow.
        table.maximum = None;
        imports.import(FIRST, &name('t', at), table);
    }
    for (at, memory) in parsed.memories.iter().enumerate() {
        let mut memory = copier.memory_type(*memory)?;
        memory.maximum = None;
        imports.import(FIRST, &name('m', at), memory);
    }
    for (at, global) in parsed.globals.iter().enumerate() {
        imports.import(FIRST, &name('g', at), copier.global_type(global.ty)?);
    }
    Ok(imports)
}

/// Puts the functions with a stub in their places, those next to each other together.
fn elements(plan: &Plan, copier: &mut Copier<'_>) -> Result<ElementSection> {
    let mut filled: Vec<(u32, u32)> = Vec::with_capacity(plan.stubs.len());
    for (function, place) in &plan.stubs {
        filled.push((*place, copier.function_index(*function)?));
    }
    filled.sort_unstable();
    let mut section = ElementSection::new();
    for part in filled.chunk_by(|a, b| a.0 + 1 == b.0) {
        let functions: Vec<u32> = part.iter().map(|(_, function)| *function).collect();
        let offset = ConstExpr::i32_const(part[0].0 as i32);
        section.active(None, &offset, Elements::Functions(functions.into()));
    }
    Ok(section)
}
