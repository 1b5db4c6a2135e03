//! Every script under `cases/`, in every mode; one test each, so that one can be run by its name.

use nacre_slt::{Mode, Settings, find_scripts, run_script};
use sqllogictest::harness::{Arguments, Failed, Trial, run};
use std::path::Path;

fn main() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let Ok(scripts) = find_scripts(&cases, &["slt", "test"]) else { std::process::exit(1) };
    let mut trials = Vec::new();
    for script in scripts {
        for mode in Mode::ALL {
            let relative = script.strip_prefix(&cases).unwrap_or(&script).with_extension("");
            let name = format!("{}::{}", relative.display(), mode.name());
            let script = script.clone();
            trials.push(Trial::test(name, move || {
                let text = std::fs::read_to_string(&script)?;
                let report =
                    run_script(&script.display().to_string(), &text, &Settings::of(&script, mode));
                let pauses = matches!(mode, Mode::Absent | Mode::Slices);
                if pauses && report.pauses == 0 && text.contains("insert into") {
                    return Err(Failed::from("no statement met absent bytes, or gave way"));
                }
                if report.failures.is_empty() && report.passed > 0 {
                    return Ok(());
                }
                let all: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
                Err(Failed::from(format!("{} passed\n{}", report.passed, all.join("\n\n"))))
            }));
        }
    }
    run(&Arguments::from_args(), trials).exit();
}
