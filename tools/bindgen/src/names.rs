//! Shorter names of what a WebAssembly module imports and exports.
//!
//! wasm-bindgen ends names with hashes, which do not compress and are in the module and in its
//! script. One program needs none: where two names are the same without, the second gets a number.

use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{ExportSection, ImportSection, Module};
use wasmparser::{Export, ImportSectionReader, Parser, Payload};

/// What went wrong, as text.
pub type Result<T> = std::result::Result<T, String>;

/// Digits of a hash.
const DIGITS: usize = 16;

/// New names by the old ones.
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// The names of a module and its script.
    pub fn of(module: &[u8], script: &str) -> Result<Names> {
        let (imports, exports) = outer_names(module)?;
        let mut names = Names(BTreeMap::new());
        names.shorten(&imports, &imports.iter().copied().collect());
        // An export may also name a function of the script.
        names.shorten(&exports, &words(script).chain(exports.iter().copied()).collect());
        Ok(names)
    }

    /// Shortens names to others than those that are taken.
    fn shorten(&mut self, olds: &[&str], taken: &BTreeSet<&str>) {
        let mut made = BTreeSet::new();
        for old in olds {
            let Some(short) = short(old) else { continue };
            let numbered = (2..).map(|number| format!("{short}_{number}"));
            let mut free = std::iter::once(short.clone())
                .chain(numbered)
                .filter(|name| !taken.contains(name.as_str()) && !made.contains(name));
            if let Some(new) = free.next() {
                made.insert(new.clone());
                self.0.insert((*old).to_owned(), new);
            }
        }
    }

    /// A script or a declaration with the new names.
    pub fn in_script(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
            out.push_str(before);
            out.push_str(self.0.get(word).map_or(word, String::as_str));
            rest = after;
        }
        out + rest
    }

    /// The module with the new names.
    pub fn in_module(&mut self, module: &[u8]) -> Result<Vec<u8>> {
        let mut renamed = Module::new();
        self.parse_core_module(&mut renamed, Parser::new(0), module).map_err(text)?;
        Ok(renamed.finish())
    }

    fn name<'a>(&'a self, old: &'a str) -> &'a str {
        self.0.get(old).map_or(old, String::as_str)
    }
}

impl Reencode for Names {
    type Error = std::convert::Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> std::result::Result<(), Error<Self::Error>> {
        for import in section.into_imports() {
            let import = import?;
            let ty = self.entity_type(import.ty)?;
            imports.import(import.module, self.name(import.name), ty);
        }
        Ok(())
    }

    fn parse_export(
        &mut self,
        exports: &mut ExportSection,
        export: Export<'_>,
    ) -> std::result::Result<(), Error<Self::Error>> {
        let name = self.name(export.name).to_owned();
        utils::parse_export(self, exports, Export { name: &name, ..export })
    }
}

/// Names of imports and of exports, in their order.
fn outer_names(module: &[u8]) -> Result<(Vec<&str>, Vec<&str>)> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(text)? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imports.push(import.map_err(text)?.name);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    exports.push(export.map_err(text)?.name);
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

/// A name up to its hash and without the words that all of them begin with; None without a hash.
fn short(name: &str) -> Option<String> {
    let is_hash = |part: &str| {
        part.len() == DIGITS && part.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: Vec<&str> = name.split('_').collect();
    let hash = parts.iter().position(|part| is_hash(part))?;
    let known = ["", "wbg", "wbindgen", "wasm", "bindgen"];
    let words: Vec<&str> =
        parts.into_iter().take(hash).filter(|word| !known.contains(word)).collect();
    Some(if words.is_empty() { "closure".to_owned() } else { words.join("_") })
}

/// Whether a character may be in the name of something.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c)).filter(|word| !word.is_empty())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
