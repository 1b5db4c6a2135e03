//! Sections that a new module has as the module it is made of.

use crate::parsed::{Copier, Parsed, Result};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    DataSection, ElementSection, GlobalSection, ImportSection, MemorySection, TypeSection,
};

pub fn types(parsed: &Parsed<'_>) -> Result<TypeSection> {
    let mut section = TypeSection::new();
    let mut copier = Copier { functions: &[] };
    for ty in &parsed.types {
        section.ty().func_type(&copier.func_type(ty.clone())?);
    }
    Ok(section)
}

pub fn imports(parsed: &Parsed<'_>, copier: &mut Copier<'_>) -> Result<ImportSection> {
    let mut section = ImportSection::new();
    for import in &parsed.imports {
        copier.parse_import(&mut section, *import)?;
    }
    Ok(section)
}

pub fn memories(parsed: &Parsed<'_>, copier: &mut Copier<'_>) -> Result<MemorySection> {
    let mut section = MemorySection::new();
    for memory in &parsed.memories {
        section.memory(copier.memory_type(*memory)?);
    }
    Ok(section)
}

pub fn globals(parsed: &Parsed<'_>, copier: &mut Copier<'_>) -> Result<GlobalSection> {
    let mut section = GlobalSection::new();
    for global in &parsed.globals {
        copier.parse_global(&mut section, global.clone())?;
    }
    Ok(section)
}

pub fn elements(parsed: &Parsed<'_>, copier: &mut Copier<'_>) -> Result<ElementSection> {
    let mut section = ElementSection::new();
    for element in &parsed.elements {
        copier.parse_element(&mut section, element.clone())?;
    }
    Ok(section)
}

pub fn data(parsed: &Parsed<'_>, copier: &mut Copier<'_>) -> Result<DataSection> {
    let mut section = DataSection::new();
    for datum in &parsed.data {
        copier.parse_data(&mut section, datum.clone())?;
    }
    Ok(section)
}
