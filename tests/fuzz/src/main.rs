//! `nacre-fuzz TARGET FROM TO`: runs generated cases of a target, and prints their statements and answers,
//! as [`nacre_fuzz::transcript`] describes them. An empty line ends each case.

use nacre_fuzz::{generated, target, transcript};
use std::io::Write;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let found = arguments.first().and_then(|name| target(name));
    let (Some(target), Some(from), Some(to)) = (found, number(1), number(2)) else {
        eprintln!("usage: nacre-fuzz TARGET FROM TO");
        std::process::exit(2);
    };
    let mut out = std::io::stdout().lock();
    for seed in from..to {
        let lines = transcript::of(|| (target.run)(&generated(seed, target.max_bytes)));
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        if writeln!(out, "{text}").is_err() {
            std::process::exit(1);
        }
    }
}
