//! A small linked module is cut, and what is left of it is looked at.

use super::*;
use std::borrow::Cow;
use wasm_encoder::{
    ConstExpr, CustomSection, DataSection, DataSymbolDefinition, ElementSection, Elements,
    ExportKind, ExportSection, FunctionSection, LinkingSection, MemorySection, MemoryType, NameMap,
    NameSection, RefType, SymbolTable, TableSection, TableType, TypeSection,
};
use wasmparser::RelocationType;

/// The entry calls the printer and the asker, and refers to a constant, which refers to the function
/// in the table.
const ENTRY: u32 = 0;
/// Calls the helper, and refers to a text.
const PRINTER: u32 = 1;
const HELPER: u32 = 2;
const IN_TABLE: u32 = 3;
/// Calls a function that it reads from an address, such as that of the constant.
const ASKER: u32 = 4;
const NAMES: [&str; 5] = ["entry", "printer", "helper", "in_table", "b::asker"];

/// Data symbols, which come after the functions: the constant and the text.
const CONSTANT: u32 = 5;
const TEXT: u32 = 6;
const BYTES: [u8; 8] = [1, 0, 0, 0, b't', b'e', b'x', b't'];
const CONSTANT_AT: u32 = 16;

/// A number of five bytes, as the linker writes them.
fn padded(number: u32) -> [u8; 5] {
    [0, 7, 14, 21, 28].map(|shift| {
        let low = (number >> shift) as u8 & 0x7f;
        if shift < 28 { low | 0x80 } else { low }
    })
}

/// A function without locals that refers to others by numbers, and which types these are of.
fn body(refers: &[(u8, RelocationType, u32)]) -> (Vec<u8>, Vec<(usize, RelocationType, u32)>) {
    let (mut bytes, mut relocations) = (vec![0], Vec::new());
    for (operator, ty, symbol) in refers {
        if *operator == CALL {
            bytes.extend([0x20, 0, 0x20, 1]);
        }
        bytes.push(*operator);
        relocations.push((bytes.len(), *ty, *symbol));
        let text_at = CONSTANT_AT + 4;
        let number = match *symbol {
            CONSTANT => CONSTANT_AT,
            TEXT => text_at,
            function => function,
        };
        bytes.extend(padded(number));
        bytes.push(0x1a);
    }
    bytes.extend([0x41, 7, 0x0b]);
    (bytes, relocations)
}

/// Reads a function at the first parameter, and calls it with both.
fn asker() -> Vec<u8> {
    let mut bytes = vec![0, 0x20, 0, 0x20, 1, 0x20, 0, LOAD, 2, 0, CALL_INDIRECT];
    bytes.extend(padded(0));
    bytes.extend([0, 0x0b]);
    bytes
}

const LOAD: u8 = 0x28;
const CALL_INDIRECT: u8 = 0x11;
const CALL: u8 = 0x10;
const CONST: u8 = 0x41;

/// The section of relocations of another section.
fn relocations(name: &str, section: u32, entries: &[(usize, RelocationType, u32)]) -> Vec<u8> {
    let mut data = vec![section as u8, entries.len() as u8];
    for (at, ty, symbol) in entries {
        data.push(*ty as u8);
        data.extend(padded(*at as u32));
        data.push(*symbol as u8);
        if matches!(ty, RelocationType::MemoryAddrSleb) {
            data.push(0);
        }
    }
    let mut module = Module::new();
    module.section(&CustomSection { name: name.into(), data: Cow::Borrowed(&data) });
    module.finish().split_off(8)
}

/// The module, with or without what the linker leaves.
fn module(linked: bool) -> Vec<u8> {
    named_module(linked, NAMES)
}

/// The module with other names of functions.
fn named_module(linked: bool, all: [&str; NAMES.len()]) -> Vec<u8> {
    let mut module = Module::new();
    let mut types = TypeSection::new();
    let number = wasm_encoder::ValType::I32;
    types.ty().function([number; 2], [number]);
    module.section(&types);
    let mut functions = FunctionSection::new();
    NAMES.iter().for_each(|_| {
        functions.function(0);
    });
    module.section(&functions);
    let mut tables = TableSection::new();
    let element_type = RefType::FUNCREF;
    let (minimum, maximum) = (2, Some(2));
    tables.table(TableType { element_type, table64: false, minimum, maximum, shared: false });
    module.section(&tables);
    let mut memories = MemorySection::new();
    let (maximum, page_size_log2) = (None, None);
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
    elements.active(None, &ConstExpr::i32_const(1), Elements::Functions((&[IN_TABLE][..]).into()));
    module.section(&elements);
    let called = RelocationType::FunctionIndexLeb;
    let addressed = RelocationType::MemoryAddrSleb;
    let bodies = [
        body(&[(CALL, called, PRINTER), (CALL, called, ASKER), (CONST, addressed, CONSTANT)]),
        body(&[(CALL, called, HELPER), (CONST, addressed, TEXT)]),
        body(&[]),
        body(&[]),
        (asker(), Vec::new()),
    ];
    let (mut code, mut of_code) = (CodeSection::new(), Vec::new());
    // Positions are those in the section, after the number of functions and the size of each.
    let mut at = 1;
    for (body, relocations) in &bodies {
        code.raw(body);
        of_code.extend(relocations.iter().map(|(in_body, ty, to)| (at + 1 + in_body, *ty, *to)));
        at += 1 + body.len();
    }
    module.section(&code);
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(CONSTANT_AT as i32), BYTES);
    module.section(&data);
    let mut names = NameSection::new();
    let mut map = NameMap::new();
    (0..).zip(all).for_each(|(at, name)| map.append(at, name));
    names.functions(&map);
    module.section(&names);
    if !linked {
        return module.finish();
    }
    let mut symbols = SymbolTable::new();
    (0..).zip(all).for_each(|(at, name)| {
        symbols.function(0, at, Some(name));
    });
    for (name, offset) in [("constant", 0), ("text", 4)] {
        symbols.data(0, name, Some(DataSymbolDefinition { index: 0, offset, size: 4 }));
    }
    let mut linking = LinkingSection::new();
    linking.symbol_table(&symbols);
    module.section(&linking);
    let mut bytes = module.finish();
    // The code is the seventh section and the data the eighth; the segment's bytes are its last.
    bytes.extend(relocations("reloc.CODE", 6, &of_code));
    let first = 1 + 1 + 3 + 1;
    let in_table = [(first, RelocationType::TableIndexI32, IN_TABLE)];
    bytes.extend(relocations("reloc.DATA", 7, &in_table));
    bytes
}

#[test]
fn what_only_a_cut_function_reaches_goes_with_it() -> Result<()> {
    let bytes = module(true);
    let cut = cut(&bytes, "# The reason.\nsilent printer\n")?;
    assert_eq!((cut.functions, cut.data), (2, 4), "the printer and the helper, and the text");
    let parsed = Parsed::new(&cut.module)?;
    let body = |function: u32| &cut.module[parsed.body(function).range()];
    let before = Parsed::new(&bytes)?;
    for kept in [ENTRY, IN_TABLE, ASKER] {
        assert_eq!(body(kept), &bytes[before.body(kept).range()], "{}", NAMES[kept as usize]);
    }
    assert_eq!(body(PRINTER), [0, CONST, 0, 0x0b], "answers zero");
    assert_eq!(body(HELPER), [0, 0x00, 0x0b], "is unreachable");
    assert_eq!(parsed.data[0].data, [1, 0, 0, 0, 0, 0, 0, 0], "the constant stays");
    let custom = |name: &[u8]| cut.module.windows(name.len()).any(|part| part == name);
    assert!(!custom(b"linking") && !custom(b"reloc."), "their positions would be wrong");
    Ok(())
}

#[test]
fn a_function_calls_another_instead() -> Result<()> {
    let cut = cut(&module(true), "calls printer => in_table")?;
    assert_eq!((cut.functions, cut.data), (2, 4), "the printer and the helper, and the text");
    let parsed = Parsed::new(&cut.module)?;
    let printer = &cut.module[parsed.body(PRINTER).range()];
    assert_eq!(printer, [0, 0x20, 0, 0x20, 1, CALL, IN_TABLE as u8, 0x0b]);
    Ok(())
}

#[test]
fn functions_of_one_name_stand_once() -> Result<()> {
    let mut bytes = module(true);
    let helper = bytes.windows(6).rposition(|part| part == b"helper").ok_or("no name")?;
    // The last one is in the symbol table; the name section's comes before.
    let named = bytes[..helper].windows(6).rposition(|part| part == b"helper").ok_or("no name")?;
    bytes[named..named + 6].copy_from_slice(b"copy.1");
    let table = bytes.windows(8).position(|part| part == b"in_table").ok_or("no name")?;
    bytes[table - 1] = 8;
    bytes[table..table + 8].copy_from_slice(b"copy.123");
    let cut = cut(&bytes, "once copy")?;
    assert_eq!(cut.functions, 1);
    let parsed = Parsed::new(&cut.module)?;
    let body = |function: u32| &cut.module[parsed.body(function).range()];
    let (kept, other) = (body(HELPER), body(IN_TABLE));
    assert_eq!(kept, [0, CONST, 7, 0x0b]);
    assert_eq!(other, [0, 0x20, 0, 0x20, 1, CALL, HELPER as u8, 0x0b]);
    Ok(())
}

#[test]
fn calls_of_the_only_implementation_are_direct() -> Result<()> {
    let names = ["entry", "printer", "helper", "<a::Only as b::Ask>::answer", "<b::Asker>::asks"];
    let cut = cut(&named_module(true, names), "direct <a::Only as b::Ask> in b")?;
    assert_eq!((cut.functions, cut.data), (0, 0));
    let parsed = Parsed::new(&cut.module)?;
    let asker = &cut.module[parsed.body(ASKER).range()];
    let (drop, nop) = (0x1a, 0x01);
    assert_eq!(asker[..7], [0, 0x20, 0, 0x20, 1, 0x20, 0], "the parameters and the address");
    assert_eq!(asker[7..10], [drop, CALL, IN_TABLE as u8]);
    assert!(asker[10..asker.len() - 1].iter().all(|byte| *byte == nop));
    Ok(())
}

#[test]
fn a_trait_without_a_single_implementation_is_an_error() {
    let error = |method: &str, asker: &str, line: &str| {
        let bytes = named_module(true, ["entry", "printer", "helper", method, asker]);
        cut(&bytes, line).err().map(|error| error.to_string())
    };
    let (method, line) = ("<a::Only as b::Ask>::answer", "direct <a::Only as b::Ask> in b");
    assert_eq!(error(method, "b::asker", line), None);
    assert_eq!(
        error("<c::Other as b::Ask>::answer", "b::asker", line).as_deref(),
        Some("<a::Only as b::Ask> is not the only one: there is <c::Other as b::Ask>::answer")
    );
    assert_eq!(
        error("answer", "b::asker", line).as_deref(),
        Some("no vtable has functions of <a::Only as b::Ask>")
    );
    assert_eq!(
        error(method, "other::asker", line).as_deref(),
        Some("no function of b calls <a::Only as b::Ask>")
    );
    assert_eq!(
        error(method, "b::asker", "direct <a::Only as b::Ask>").as_deref(),
        Some("`<a::Only as b::Ask>` is in no crate")
    );
    assert_eq!(
        error(method, "b::asker", "direct only in b").as_deref(),
        Some("only:: is of no trait")
    );
}

#[test]
fn nothing_goes_without_a_list() -> Result<()> {
    let cut = cut(&module(true), "")?;
    assert_eq!((cut.functions, cut.data), (0, 0));
    Ok(())
}

#[test]
fn a_list_that_is_no_longer_true_is_an_error() {
    let bytes = module(true);
    let error = |list: &str| cut(&bytes, list).err().map(|error| error.to_string());
    assert_eq!(error("silent other").as_deref(), Some("no function is named other"));
    assert_eq!(error("printer").as_deref(), Some("`printer` has no name"));
    assert_eq!(error("calls printer").as_deref(), Some("`calls printer` calls nothing"));
    assert_eq!(error("calls printer => other").as_deref(), Some("no function is named other"));
    assert_eq!(error("once printer").as_deref(), Some("one function is named printer"));
    assert_eq!(
        error("loud printer").as_deref(),
        Some("loud is not what a function can do instead")
    );
    assert!(error("nowhere printer").is_some_and(|e| e.starts_with("printer has the type")));
    assert_eq!(
        error("silent printer\nsilent helper").as_deref(),
        Some("helper is not reached"),
        "a line that is not needed"
    );
    let unlinked = cut(&module(false), "").err().map(|error| error.to_string());
    assert_eq!(unlinked.as_deref(), Some("the module was linked without --emit-relocs"));
}
