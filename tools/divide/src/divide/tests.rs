//! A small module is divided, and its parts are looked at.

use super::*;
use crate::plan::{LOADS_MORE, take_small};
use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, ImportSection, Instruction, MemorySection, MemoryType, Module,
    RefType, TableSection, TableType, TypeSection, ValType,
};

/// Function 0 is the import that loads more; the others are in this order.
const ENTRY: u32 = 1;
const RARE: u32 = 2;
const COMMON: u32 = 3;
const IN_TABLE: u32 = 4;
const PRIVATE: u32 = 5;

fn body(calls: &[u32]) -> Function {
    let mut function = Function::new([]);
    for called in calls {
        function.instruction(&Instruction::LocalGet(0));
        function.instruction(&Instruction::Call(*called));
        function.instruction(&Instruction::Drop);
    }
    function.instruction(&Instruction::LocalGet(0));
    function.instruction(&Instruction::End);
    function
}

/// The entry calls the rare function, which calls the common and the private one.
fn module(import: &str) -> Vec<u8> {
    let mut module = Module::new();
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([ValType::I32], [ValType::I32]);
    module.section(&types);
    let mut imports = ImportSection::new();
    imports.import("host", import, EntityType::Function(0));
    module.section(&imports);
    let mut functions = FunctionSection::new();
    (ENTRY..=PRIVATE).for_each(|_| {
        functions.function(1);
    });
    module.section(&functions);
    let mut tables = TableSection::new();
    let (minimum, maximum) = (3, Some(3));
    let element_type = RefType::FUNCREF;
    tables.table(TableType { element_type, table64: false, minimum, maximum, shared: false });
    module.section(&tables);
    let mut memories = MemorySection::new();
    let page_size_log2 = None;
    let maximum = None;
    memories.memory(MemoryType {
        minimum: 1,
        maximum,
        memory64: false,
        shared: false,
        page_size_log2,
    });
    module.section(&memories);
    let mut exports = ExportSection::new();
    exports.export("entry", ExportKind::Func, ENTRY);
    module.section(&exports);
    let mut elements = ElementSection::new();
    let listed = [COMMON, IN_TABLE];
    elements.active(None, &ConstExpr::i32_const(1), Elements::Functions((&listed[..]).into()));
    module.section(&elements);
    let mut code = CodeSection::new();
    for calls in [&[RARE][..], &[COMMON, PRIVATE], &[], &[], &[]] {
        code.function(&body(calls));
    }
    module.section(&code);
    module.finish()
}

#[test]
fn each_function_is_in_one_module_and_reachable_from_the_other() -> Result<()> {
    let bytes = module(LOADS_MORE);
    let divided = divide(&Parsed::new(&bytes)?, &[ENTRY, COMMON])?;
    let first = Parsed::new(&divided.first)?;
    // Two functions, stubs of the rare one and of the one in the table, and what loads more.
    assert_eq!(first.bodies.len(), 5);
    // Stubs are in the order of their types, then of their places.
    let (stub_in_table, stub_rare, ensure) = (3, 4, 5);
    assert_eq!(first.calls(1)?, [stub_rare], "the entry calls the stub");
    assert_eq!(first.calls(stub_rare)?, [ensure]);
    assert_eq!(first.calls(ensure)?, [0]);
    assert_eq!(first.places()?, [(1, 2), (2, stub_in_table)]);
    assert_eq!((first.tables[0].initial, first.tables[0].maximum), (4, Some(4)));
    let names: Vec<&str> = first.exports.iter().map(|export| export.name).collect();
    assert_eq!(names, ["entry", "f0", "t0", "m0", "isWhole"]);
    assert_eq!(first.exports[1].index, 2, "the second module calls the common function");

    let more = wasmparser::Parser::new(0).parse_all(&divided.more);
    let (mut imported, mut bodies, mut filled) = (0, 0, Vec::new());
    for payload in more {
        match payload? {
            wasmparser::Payload::ImportSection(section) => imported = section.count(),
            wasmparser::Payload::CodeSectionEntry(_) => bodies += 1,
            wasmparser::Payload::ElementSection(section) => {
                let elements = section.into_iter().collect::<std::result::Result<_, _>>()?;
                filled = Parsed { elements, ..Parsed::default() }.places()?;
            }
            _ => {}
        }
    }
    assert_eq!((imported, bodies), (3, 3), "a function, the table, the memory");
    // The rare function has the new place, the other one the place of its stub.
    assert_eq!(filled, [(2, 2), (3, 1)]);
    Ok(())
}

#[test]
fn small_functions_are_taken_with_what_they_call() -> Result<()> {
    let bytes = module(LOADS_MORE);
    let parsed = Parsed::new(&bytes)?;
    let taken = |small: usize| -> Result<Vec<u32>> {
        let mut needed = [ENTRY].into();
        take_small(&parsed, small, &mut needed)?;
        Ok(needed.into_iter().collect())
    };
    assert_eq!(taken(1)?, [ENTRY]);
    // The rare function calls others, of which the first module has no stub.
    assert_eq!(taken(100)?, [ENTRY, COMMON, IN_TABLE]);
    Ok(())
}

#[test]
fn what_cannot_be_divided_is_an_error() -> Result<()> {
    let bytes = module("other");
    let parsed = Parsed::new(&bytes)?;
    let error = |needed: &[u32]| divide(&parsed, needed).err().map(|error| error.to_string());
    assert_eq!(error(&[ENTRY]).as_deref(), Some("no import loads the second module"));
    assert_eq!(error(&[0]).as_deref(), Some("function 0 is needed, and has no body"));
    assert_eq!(error(&[9]).as_deref(), Some("function 9 is needed, and has no body"));
    Ok(())
}
