//! Colours, widths, progress bars and number formats. Output to anything but a terminal is plain
//! and without progress bars; `NO_COLOR` turns colours off.

use console::{Style, Term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Replaces a control character with a visible one.
pub fn visible(c: char) -> char {
    match c {
        '\r' => '␍',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// Styles text bold red, if standard error shows colours.
pub fn red(text: &str) -> String {
    Style::new().for_stderr().red().bold().apply_to(text).to_string()
}

/// Styles text bold, if standard error shows colours.
pub fn bold(text: &str) -> String {
    Style::new().for_stderr().bold().apply_to(text).to_string()
}

/// Returns the width of the terminal in characters, if standard output is one.
pub fn width() -> Option<usize> {
    let term = Term::stdout();
    if !term.is_term() {
        return None;
    }
    term.size_checked().map(|(_, columns)| columns as usize)
}

/// Whether standard output is a terminal that shows colours.
pub fn stdout_colors() -> bool {
    console::colors_enabled()
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    Term::stdout().is_term()
}

/// Progress bar over bytes or rows on standard error; hidden if that is not a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows a bar over `total` units of work, and the number of rows next to it.
    pub fn new(label: &str, total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(
            Some(total.max(1)),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let template = "{prefix:12} {bar:30} {percent:>3}% {msg} {eta:>4}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(label.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// Sets the units of work done and the number of rows.
    pub fn update(&self, done: u64, rows: u64) {
        self.0.set_position(done);
        let seconds = self.0.elapsed().as_secs_f64();
        self.0.set_message(format!("{} rows {}", grouped(rows), rate(rows, seconds)));
    }

    /// Shows a text in place of the number of rows.
    pub fn phase(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Groups digits, as in `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a rate, as in `1,234,567 rows/s`.
pub fn rate(rows: u64, seconds: f64) -> String {
    format!("{} rows/s", grouped((rows as f64 / seconds.max(1e-6)) as u64))
}

/// Formats a number of rows, as in `1 row` and `2 rows`.
pub fn rows(count: u64) -> String {
    counted(count, "row")
}

/// Formats a count of things, whose plural adds an `s`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Formats a size in decimal units, as in `12.3 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats a duration, as in `1.234 s`, `12.3 ms` and `45 µs`.
pub fn duration(elapsed: Duration) -> String {
    let micros = elapsed.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.3} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_reading() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(277_000_000), "277.0 MB");
        assert_eq!(rows(1), "1 row");
        assert_eq!(rows(2_000), "2,000 rows");
        assert_eq!(duration(Duration::from_micros(900)), "900 µs");
        assert_eq!(duration(Duration::from_micros(12_340)), "12.3 ms");
        assert_eq!(duration(Duration::from_millis(1_234)), "1.234 s");
    }
}
