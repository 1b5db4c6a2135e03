//! What the README shows of the command line and of Rust runs as it stands there.

use crate::folder::Folder;
use crate::readme_example;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");

/// Returns the first fence of a language after a heading.
fn fence(heading: &str, language: &str) -> &'static str {
    let (_, section) = README.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, fence) = section.split_once(&format!("\n```{language}\n")).unwrap();
    fence.split_once("```\n").unwrap().0
}

/// Splits a command line into its words and its comment. Double quotes hold words together.
fn parse(line: &str) -> (Vec<String>, &str) {
    let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
    let mut words = Vec::new();
    for (at, part) in command.split('"').enumerate() {
        match at % 2 {
            1 => words.push(part.to_string()),
            _ => words.extend(part.split_whitespace().map(str::to_string)),
        }
    }
    (words, comment.trim())
}

#[test]
fn the_commands_and_the_program_of_the_readme_print_what_it_says() {
    let folder = Folder::new();
    let mut checked = 0;
    for line in fence("In a terminal", "sh").lines() {
        let (words, comment) = parse(line);
        let Some(("nacre", arguments)) = words.split_first().map(|(w, rest)| (&**w, rest)) else {
            continue;
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, out, err) = folder.piped(&arguments, b"\\?\n");
        assert_eq!(code, 0, "{line}\n{out}{err}");
        if let Some(printed) = comment.strip_prefix("prints ") {
            assert!(out.contains(printed), "{line}\n{out}");
            checked += 1;
        }
        if comment.starts_with(r"\? ") {
            assert!(out.contains(r"\d"), "{line}\n{out}");
            checked += 1;
        }
    }
    assert_eq!(checked, 2, "the README says what two commands print");

    let (_, printed) = fence("In Rust", "rust").split_once("; // ").unwrap();
    let printed = printed.lines().next().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "--nocapture", "readme::run_the_program"]);
    let done = program.current_dir(&folder.0).output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{out}");
    assert!(out.contains(printed), "{out}");
}

/// Runs in a process of its own, in the folder that has the database.
#[test]
#[ignore = "run by the test of the README"]
fn run_the_program() {
    readme_example::main().unwrap();
}

#[test]
fn the_program_of_the_readme_is_the_one_that_is_tested() {
    let source = include_str!("readme_example.rs");
    let (_, program) = source.split_once("]\n\n").unwrap();
    assert_eq!(fence("In Rust", "rust"), program.replace("pub fn main", "fn main"));
}

#[test]
fn every_command_of_the_readme_has_help() {
    let folder = Folder::new();
    let named = README.lines().filter_map(|line| line.strip_prefix("| `nacre "));
    let commands: Vec<&str> = named.filter_map(|line| line.split([' ', '`']).next()).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        let (code, out, err) = folder.nacre(&[command, "--help"]);
        assert_eq!(code, 0, "{command}: {err}");
        assert!(out.contains(&format!("Usage: nacre {command}")), "{out}");
    }
}
