//! The module with the functions that are needed first.

use crate::parsed::{Copier, Parsed, Result};
use crate::plan::{Plan, name};
use crate::sections;
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection,
    GlobalType, Instruction, Module, StartSection, TableSection, ValType,
};

/// Name of the exported global that is 1 once the second module is there.
const IS_WHOLE: &str = "isWhole";

pub fn first(parsed: &Parsed<'_>, plan: &Plan) -> Result<Vec<u8>> {
    let imported = parsed.imported();
    let mut numbers: Vec<Option<u32>> = vec![None; parsed.functions.len()];
    (0..imported).for_each(|import| numbers[import as usize] = Some(import));
    let stubs = plan.stubs.iter().map(|(function, _)| function);
    for (number, function) in (imported..).zip(plan.needed.iter().chain(stubs.clone())) {
        numbers[*function as usize] = Some(number);
    }
    // Stubs call one function more.
    let ensure = imported + (plan.needed.len() + plan.stubs.len()) as u32;
    let mut copier = Copier { functions: &numbers };
    let mut module = Module::new();
    module.section(&sections::types(parsed)?);
    module.section(&sections::imports(parsed, &mut copier)?);
    let mut functions = FunctionSection::new();
    for function in plan.needed.iter().chain(stubs) {
        functions.function(parsed.functions[*function as usize]);
    }
    functions.function(parsed.functions[plan.loads_more as usize]);
    module.section(&functions);
    let mut tables = TableSection::new();
    for (at, table) in parsed.tables.iter().enumerate() {
        let mut table = copier.table_type(*table)?;
        if at == 0 {
            let added = u64::from(plan.places) - table.minimum;
            table.minimum += added;
            table.maximum = table.maximum.map(|maximum| maximum + added);
        }
        tables.table(table);
    }
    module.section(&tables);
    module.section(&sections::memories(parsed, &mut copier)?);
    let mut globals = sections::globals(parsed, &mut copier)?;
    let is_whole = globals.len();
    let flag = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
    globals.global(flag, &ConstExpr::i32_const(0));
    module.section(&globals);
    module.section(&exports(parsed, plan, &mut copier, is_whole)?);
    if let Some(start) = parsed.start {
        module.section(&StartSection { function_index: copier.function_index(start)? });
    }
    module.section(&sections::elements(parsed, &mut copier)?);
    let mut code = CodeSection::new();
    for function in &plan.needed {
        copier.parse_function_body(&mut code, parsed.body(*function).clone())?;
    }
    for (function, place) in &plan.stubs {
        code.function(&stub(parsed, *function, *place, ensure));
    }
    code.function(&ensures(is_whole, plan.loads_more));
    module.section(&code);
    module.section(&sections::data(parsed, &mut copier)?);
    Ok(module.finish())
}

fn exports(
    parsed: &Parsed<'_>,
    plan: &Plan,
    copier: &mut Copier<'_>,
    is_whole: u32,
) -> Result<ExportSection> {
    let mut exports = ExportSection::new();
    for export in &parsed.exports {
        copier.parse_export(&mut exports, *export)?;
    }
    for (at, function) in plan.shared.iter().enumerate() {
        exports.export(&name('f', at), ExportKind::Func, copier.function_index(*function)?);
    }
    for at in 0..parsed.tables.len() {
        exports.export(&name('t', at), ExportKind::Table, at as u32);
    }
    for at in 0..parsed.memories.len() {
        exports.export(&name('m', at), ExportKind::Memory, at as u32);
    }
    for at in 0..parsed.globals.len() {
        exports.export(&name('g', at), ExportKind::Global, at as u32);
    }
    exports.export(IS_WHOLE, ExportKind::Global, is_whole);
    Ok(exports)
}

/// Loads the second module if it is not there yet, and calls the function in it.
fn stub(parsed: &Parsed<'_>, function: u32, place: u32, ensure: u32) -> Function {
    let mut code = Function::new([]);
    code.instruction(&Instruction::Call(ensure));
    for parameter in 0..parsed.type_of(function).params().len() as u32 {
        code.instruction(&Instruction::LocalGet(parameter));
    }
    code.instruction(&Instruction::I32Const(place as i32));
    let type_index = parsed.functions[function as usize];
    code.instruction(&Instruction::CallIndirect { type_index, table_index: 0 });
    code.instruction(&Instruction::End);
    code
}

/// Calls the import that loads the second module, which sets the flag, unless it is set.
fn ensures(is_whole: u32, loads_more: u32) -> Function {
    let mut code = Function::new([]);
    code.instruction(&Instruction::GlobalGet(is_whole));
    code.instruction(&Instruction::I32Eqz);
    code.instruction(&Instruction::If(BlockType::Empty));
    code.instruction(&Instruction::Call(loads_more));
    code.instruction(&Instruction::End);
    code.instruction(&Instruction::End);
    code
}
