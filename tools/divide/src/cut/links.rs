//! What a linked module's functions and data refer to, by the relocations that the linker leaves
//! with `--emit-relocs`. Calls through the table and addresses of constants are exact: a number in
//! the code that only looks like a place in the table is none.

use crate::parsed::{Parsed, Result};
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{
    DefinedDataSymbol, ExternalKind, KnownCustom, Linking, Parser, Payload, RelocationEntry,
    RelocationType, SymbolInfo,
};

/// Something that refers to others, and that others refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    Function(u32),
    /// A data symbol, by its position in [`Links::data`].
    Data(usize),
    /// A symbol without code or bytes in the module, such as the end of the stack.
    Nothing,
}

/// What refers to what in a linked module.
pub struct Links {
    /// The names of functions, demangled.
    names: HashMap<u32, String>,
    /// Data symbols, as ranges of bytes of a segment.
    pub data: Vec<(u32, Range<usize>)>,
    /// What each function refers to.
    functions: Vec<Vec<Node>>,
    /// What each data symbol refers to, with the offset of the reference in it.
    constants: Vec<Vec<(usize, Node)>>,
    /// What bytes that belong to no symbol refer to.
    roots: Vec<Node>,
}

/// What is reached from the exports.
pub struct Reached {
    pub functions: Vec<bool>,
    /// By the position in [`Links::data`].
    pub data: Vec<bool>,
}

/// The sections that relocations belong to, and the symbols that they name.
#[derive(Default)]
struct Read<'a> {
    symbols: Vec<SymbolInfo<'a>>,
    /// Relocations by the number of their section.
    entries: Vec<(u32, Vec<RelocationEntry>)>,
    names: HashMap<u32, String>,
    /// Numbers and first bytes of the code and the data section.
    code: Option<(u32, usize)>,
    data: Option<(u32, usize)>,
}

fn read<'a>(bytes: &'a [u8]) -> Result<Read<'a>> {
    let mut read = Read::default();
    let mut number = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        match &payload {
            Payload::CodeSectionStart { range, .. } => read.code = Some((number, range.start)),
            Payload::DataSection(section) => read.data = Some((number, section.range().start)),
            Payload::CustomSection(custom) => match custom.as_known() {
                KnownCustom::Name(section) => {
                    for part in section {
                        let wasmparser::Name::Function(names) = part? else { continue };
                        for name in names {
                            let name = name?;
                            let shown = format!("{:#}", rustc_demangle::demangle(name.name));
                            read.names.insert(name.index, without_number(shown));
                        }
                    }
                }
                KnownCustom::Linking(section) => {
                    for part in section.subsections() {
                        let Linking::SymbolTable(symbols) = part? else { continue };
                        read.symbols =
                            symbols.into_iter().collect::<std::result::Result<_, _>>()?;
                    }
                }
                KnownCustom::Reloc(section) => {
                    let entries: std::result::Result<_, _> =
                        section.entries().into_iter().collect();
                    read.entries.push((section.section_index(), entries?));
                }
                _ => {}
            },
            _ => {}
        }
        number += u32::from(payload.as_section().is_some());
    }
    Ok(read)
}

/// A name without the number that tells copies of a function apart.
fn without_number(mut name: String) -> String {
    let number = name.rsplit_once('.').map(|(_, number)| number);
    if let Some(number) = number.filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    {
        name.truncate(name.len() - number.len() - 1);
    }
    name
}

impl Links {
    pub fn new(bytes: &[u8], parsed: &Parsed<'_>) -> Result<Links> {
        let Read { symbols, entries, names, code, data } = read(bytes)?;
        let (code, data) = code.zip(data).ok_or("the module has no code or no data")?;
        if symbols.is_empty() || entries.is_empty() {
            return Err("the module was linked without --emit-relocs".into());
        }
        let mut links = Links {
            names,
            data: Vec::new(),
            functions: vec![Vec::new(); parsed.functions.len()],
            constants: Vec::new(),
            roots: Vec::new(),
        };
        let nodes: Vec<Node> = symbols.iter().map(|symbol| links.node(symbol)).collect();
        links.constants = vec![Vec::new(); links.data.len()];
        for (section, entries) in &entries {
            for entry in entries {
                let Some(to) = target(entry, &nodes)? else { continue };
                if *section == code.0 {
                    links.code_refers(parsed, code.1 + entry.offset as usize, to)?;
                } else if *section == data.0 {
                    links.data_refers(parsed, data.1 + entry.offset as usize, to)?;
                }
            }
        }
        Ok(links)
    }

    fn node(&mut self, symbol: &SymbolInfo<'_>) -> Node {
        match symbol {
            SymbolInfo::Func { index, .. } => Node::Function(*index),
            SymbolInfo::Data {
                symbol: Some(DefinedDataSymbol { index, offset, size }), ..
            } => {
                let from = *offset as usize;
                self.data.push((*index, from..from + *size as usize));
                Node::Data(self.data.len() - 1)
            }
            _ => Node::Nothing,
        }
    }

    fn code_refers(&mut self, parsed: &Parsed<'_>, at: usize, to: Node) -> Result<()> {
        let after = parsed.bodies.partition_point(|body| body.range().start <= at);
        let body = after.checked_sub(1).filter(|body| parsed.bodies[*body].range().contains(&at));
        let body = body.ok_or("a relocation is outside of the functions")?;
        self.functions[parsed.imports.len() + body].push(to);
        Ok(())
    }

    fn data_refers(&mut self, parsed: &Parsed<'_>, at: usize, to: Node) -> Result<()> {
        let mut segments = (0..).zip(&parsed.data);
        let found = segments.find_map(|(number, segment)| {
            let start = segment.range.end - segment.data.len();
            (start..segment.range.end).contains(&at).then(|| (number, at - start))
        });
        let (segment, at) = found.ok_or("a relocation is outside of the data")?;
        let mut owned = false;
        for (symbol, (of, range)) in self.data.iter().enumerate() {
            if *of == segment && range.contains(&at) {
                self.constants[symbol].push((at - range.start, to));
                owned = true;
            }
        }
        if !owned {
            self.roots.push(to);
        }
        Ok(())
    }

    /// The functions of a name, of which there is at least one.
    pub fn named(&self, name: &str) -> Result<Vec<u32>> {
        let mut found: Vec<u32> =
            self.names.iter().filter(|(_, known)| *known == name).map(|(at, _)| *at).collect();
        found.sort_unstable();
        if found.is_empty() {
            return Err(format!("no function is named {name}").into());
        }
        Ok(found)
    }

    pub fn name(&self, function: u32) -> &str {
        self.names.get(&function).map_or("?", String::as_str)
    }

    /// The functions that each data symbol has, by their offsets in it.
    pub fn tables(&self) -> impl Iterator<Item = Vec<(usize, u32)>> + '_ {
        let function = |(at, to): &(usize, Node)| match to {
            Node::Function(function) => Some((*at, *function)),
            _ => None,
        };
        self.constants.iter().map(move |constant| constant.iter().filter_map(function).collect())
    }

    /// Positions in the module of the bytes of constants that are not reached.
    pub fn unneeded(&self, parsed: &Parsed<'_>, reached: &Reached) -> Vec<usize> {
        let mut unneeded = Vec::new();
        for (number, segment) in (0..).zip(&parsed.data) {
            // Symbols may overlap, and bytes that belong to none are padding or merged strings.
            let mut is_needed = vec![true; segment.data.len()];
            for needed in [false, true] {
                let of = self.data.iter().zip(&reached.data);
                for ((_, range), _) in
                    of.filter(|((of, _), reached)| *of == number && **reached == needed)
                {
                    is_needed[range.clone()].fill(needed);
                }
            }
            let start = segment.range.end - segment.data.len();
            let at = is_needed.iter().enumerate().filter(|(_, needed)| !**needed);
            unneeded.extend(at.map(|(at, _)| start + at));
        }
        unneeded
    }

    /// What the exports and further functions reach without going through some functions.
    pub fn reached(
        &self,
        parsed: &Parsed<'_>,
        without: &[u32],
        further: impl Iterator<Item = u32>,
    ) -> Reached {
        let mut reached = Reached {
            functions: vec![false; self.functions.len()],
            data: vec![false; self.data.len()],
        };
        let exported = parsed.exports.iter().filter(|export| export.kind == ExternalKind::Func);
        let mut todo: Vec<Node> = exported.map(|export| Node::Function(export.index)).collect();
        todo.extend(parsed.start.map(Node::Function));
        todo.extend(further.map(Node::Function));
        todo.extend(&self.roots);
        while let Some(node) = todo.pop() {
            match node {
                Node::Function(at) if !reached.functions[at as usize] => {
                    reached.functions[at as usize] = true;
                    if !without.contains(&at) {
                        todo.extend(&self.functions[at as usize]);
                    }
                }
                Node::Data(at) if !reached.data[at] => {
                    reached.data[at] = true;
                    todo.extend(self.constants[at].iter().map(|(_, to)| to));
                }
                _ => {}
            }
        }
        reached
    }
}

/// What a relocation refers to; nothing if that is no function or data.
fn target(entry: &RelocationEntry, nodes: &[Node]) -> Result<Option<Node>> {
    use RelocationType as R;
    match entry.ty {
        R::FunctionIndexLeb | R::TableIndexSleb | R::TableIndexI32 => {
            let node = nodes.get(entry.index as usize);
            match node {
                Some(Node::Function(_)) => Ok(node.copied()),
                _ => Err(format!("{entry:?} is of no function").into()),
            }
        }
        R::MemoryAddrLeb | R::MemoryAddrSleb | R::MemoryAddrI32 => {
            match nodes.get(entry.index as usize) {
                Some(Node::Data(at)) => Ok(Some(Node::Data(*at))),
                Some(Node::Nothing) => Ok(None),
                _ => Err(format!("{entry:?} is of no data").into()),
            }
        }
        R::TypeIndexLeb | R::GlobalIndexLeb | R::TableNumberLeb => Ok(None),
        R::SectionOffsetI32 | R::FunctionOffsetI32 => Ok(None),
        _ => Err(format!("{entry:?} is not known").into()),
    }
}
