//! The sections of a module, and copying its functions with other numbers.

use wasm_encoder::reencode::{self, Reencode};
use wasmparser::{
    Data, Element, ElementItems, ElementKind, Export, FuncType, FunctionBody, Global, Import,
    Imports, MemoryType, Operator, Parser, Payload, TableType, TypeRef,
};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A module. Functions are numbered as in the module, imports first.
#[derive(Default)]
pub struct Parsed<'a> {
    pub types: Vec<FuncType>,
    pub imports: Vec<Import<'a>>,
    /// The type of each function.
    pub functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<Global<'a>>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Element<'a>>,
    pub bodies: Vec<FunctionBody<'a>>,
    pub data: Vec<Data<'a>>,
}

impl<'a> Parsed<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Parsed<'a>> {
        let mut parsed = Parsed::default();
        for payload in Parser::new(0).parse_all(bytes) {
            parsed.take(payload?)?;
        }
        Ok(parsed)
    }

    fn take(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section.into_iter_err_on_gc_types() {
                    self.types.push(group?);
                }
            }
            Payload::ImportSection(section) => {
                for import in section {
                    let Imports::Single(_, import) = import? else {
                        return Err("imports in groups".into());
                    };
                    let TypeRef::Func(index) = import.ty else {
                        return Err(format!("an import that is no function: {import:?}").into());
                    };
                    self.functions.push(index);
                    self.imports.push(import);
                }
            }
            Payload::FunctionSection(section) => {
                for index in section {
                    self.functions.push(index?);
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    self.tables.push(table?.ty);
                }
            }
            Payload::MemorySection(section) => self.memories = read(section)?,
            Payload::GlobalSection(section) => self.globals = read(section)?,
            Payload::ExportSection(section) => self.exports = read(section)?,
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => self.elements = read(section)?,
            Payload::DataSection(section) => self.data = read(section)?,
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::Version { .. }
            | Payload::DataCountSection { .. }
            | Payload::CodeSectionStart { .. }
            | Payload::CustomSection(_)
            | Payload::End(_) => {}
            other => return Err(format!("a section that is not known: {other:?}").into()),
        }
        Ok(())
    }

    pub fn imported(&self) -> u32 {
        self.imports.len() as u32
    }

    pub fn type_of(&self, function: u32) -> &FuncType {
        &self.types[self.functions[function as usize] as usize]
    }

    /// The body of a function that is not imported.
    pub fn body(&self, function: u32) -> &FunctionBody<'a> {
        &self.bodies[(function - self.imported()) as usize]
    }

    /// The functions that a function calls by their numbers.
    pub fn calls(&self, function: u32) -> Result<Vec<u32>> {
        let mut called = Vec::new();
        for operator in self.body(function).get_operators_reader()? {
            match operator? {
                Operator::Call { function_index } => called.push(function_index),
                operator @ (Operator::RefFunc { .. }
                | Operator::ReturnCall { .. }
                | Operator::MemoryInit { .. }
                | Operator::DataDrop { .. }
                | Operator::TableInit { .. }
                | Operator::ElemDrop { .. }) => {
                    return Err(format!("function {function} has {operator:?}").into());
                }
                _ => {}
            }
        }
        Ok(called)
    }

    /// Each place of the table of functions that is filled from the beginning, with its function.
    pub fn places(&self) -> Result<Vec<(u32, u32)>> {
        let mut places = Vec::new();
        for element in &self.elements {
            let ElementKind::Active { table_index: None | Some(0), offset_expr } = &element.kind
            else {
                return Err("elements that are not active, or not of the first table".into());
            };
            let offset = match offset_expr.get_operators_reader().read()? {
                Operator::I32Const { value } => value as u32,
                other => return Err(format!("elements that begin at {other:?}").into()),
            };
            let ElementItems::Functions(functions) = &element.items else {
                return Err("elements that are expressions".into());
            };
            for (place, function) in (offset..).zip(functions.clone()) {
                places.push((place, function?));
            }
        }
        Ok(places)
    }
}

fn read<'a, T: wasmparser::FromReader<'a>>(
    section: wasmparser::SectionLimited<'a, T>,
) -> Result<Vec<T>> {
    Ok(section.into_iter().collect::<std::result::Result<_, _>>()?)
}

/// A function that a copied part refers to, and that the new module does not have.
#[derive(Debug)]
pub struct Missing(u32);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "function {} is missing", self.0)
    }
}

impl std::error::Error for Missing {}

/// Copies parts of a module; functions have the numbers of this list.
pub struct Copier<'a> {
    pub functions: &'a [Option<u32>],
}

impl Reencode for Copier<'_> {
    type Error = Missing;

    fn function_index(
        &mut self,
        function: u32,
    ) -> std::result::Result<u32, reencode::Error<Missing>> {
        self.functions[function as usize].ok_or(reencode::Error::UserError(Missing(function)))
    }
}
