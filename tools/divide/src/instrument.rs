//! A module that notes which of its functions run.

use crate::parsed::{Copier, Parsed, Result, types};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, ExportKind, ExportSection, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Instruction, MemorySection, Module, StartSection,
    TableSection, ValType,
};

/// The instrumented module.
pub fn instrument(parsed: &Parsed<'_>) -> Result<Vec<u8>> {
    let numbers: Vec<Option<u32>> = (0..parsed.functions.len() as u32).map(Some).collect();
    let mut copier = Copier { functions: &numbers };
    let mut module = Module::new();
    module.section(&types(parsed)?);
    let mut imports = ImportSection::new();
    for import in &parsed.imports {
        copier.parse_import(&mut imports, *import)?;
    }
    module.section(&imports);
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
    let mut memories = MemorySection::new();
    for memory in &parsed.memories {
        memories.memory(copier.memory_type(*memory)?);
    }
    module.section(&memories);
    let mut globals = GlobalSection::new();
    for global in &parsed.globals {
        copier.parse_global(&mut globals, global.clone())?;
    }
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
    let mut elements = ElementSection::new();
    for element in &parsed.elements {
        copier.parse_element(&mut elements, element.clone())?;
    }
    module.section(&elements);
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
    let mut data = wasm_encoder::DataSection::new();
    for datum in &parsed.data {
        copier.parse_data(&mut data, datum.clone())?;
    }
    module.section(&data);
    Ok(module.finish())
}
