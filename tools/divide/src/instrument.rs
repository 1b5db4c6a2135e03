//! A module that notes which of its functions run.

use crate::parsed::{Copier, Parsed, Result};
use crate::sections;
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, ExportKind, ExportSection, FunctionSection, GlobalType, Instruction,
    Module, StartSection, TableSection, ValType,
};

/// The instrumented module.
pub fn instrument(parsed: &Parsed<'_>) -> Result<Vec<u8>> {
    let numbers: Vec<Option<u32>> = (0..parsed.functions.len() as u32).map(Some).collect();
    let mut copier = Copier { functions: &numbers };
    let mut module = Module::new();
    module.section(&sections::types(parsed)?);
    module.section(&sections::imports(parsed, &mut copier)?);
    let mut functions = FunctionSection::new();
    parsed.functions[parsed.imports.len()..].iter().for_each(|ty| {
        functions.function(*ty);
    });
    module.section(&functions);
    let mut tables = TableSection::new();
    for table in &parsed.tables {
        tables.table(copier.table_type(*table)?);
    }
    module.section(&tables);
    module.section(&sections::memories(parsed, &mut copier)?);
    let mut globals = sections::globals(parsed, &mut copier)?;
    let mut exports = ExportSection::new();
    for export in &parsed.exports {
        copier.parse_export(&mut exports, *export)?;
    }
    let first_mark = globals.len();
    let mark = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
    for at in 0..parsed.bodies.len() as u32 {
        globals.global(mark, &ConstExpr::i32_const(0));
        let name = format!("ran:{}", parsed.imported() + at);
        exports.export(&name, ExportKind::Global, first_mark + at);
    }
    module.section(&globals);
    module.section(&exports);
    if let Some(start) = parsed.start {
        module.section(&StartSection { function_index: start });
    }
    module.section(&sections::elements(parsed, &mut copier)?);
    let mut code = CodeSection::new();
    for (at, body) in (0..).zip(&parsed.bodies) {
        let mut function = copier.new_function_with_parsed_locals(body)?;
        function.instruction(&Instruction::I32Const(1));
        function.instruction(&Instruction::GlobalSet(first_mark + at));
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            function.instruction(&copier.parse_instruction(&mut reader)?);
        }
        code.function(&function);
    }
    module.section(&code);
    module.section(&sections::data(parsed, &mut copier)?);
    Ok(module.finish())
}
