//! `printf` and `format`: numbers and texts put into a text at its placeholders. `printf` has the
//! placeholders of C (`%-8s`, `%.2f`), `format` those of Python (`{:>8}`, `{0:.2f}`).

use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::Values;
use nacre_function::entry::definition::{
    Arguments, Arity, Binding, Operand, RowCall, ScalarFunction, Typing, text,
};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::function;
use nacre_function::vector::room::check_length;
use nacre_types::{DataType, Error, Result, Value, decimal};
use std::iter::Peekable;
use std::str::Chars;

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[&PRINTF, &FORMAT];

static PRINTF: ScalarFunction = function(
    &["printf"],
    Doc::new(
        "printf(format, …)",
        "The arguments at the placeholders of C: `%d`, `%5.2f`, `%-8s`, `%x` and their kin.",
        "printf('%-3s|%05.1f|%x', 'ab', 2.25, 255)",
        "ab |002.3|ff",
    ),
    Typing::Rule(Arity::at_least(1), |binding, arguments| {
        any_arguments(&PRINTF, binding, arguments)
    }),
    Values(|row| filled(row, percent)),
);

static FORMAT: ScalarFunction = function(
    &["format"],
    Doc::new(
        "format(format, …)",
        "The arguments at the placeholders of Python: `{}`, `{0}`, `{:>8}`, `{:,.2f}` and their kin.",
        "format('{1}{0:>4}{{}}', 7, 'a')",
        "a   7{}",
    ),
    Typing::Rule(Arity::at_least(1), |binding, arguments| {
        any_arguments(&FORMAT, binding, arguments)
    }),
    Values(|row| filled(row, braces)),
);

/// Most digits after the point.
const MAX_DIGITS: usize = 1000;

/// Types a text and arguments of any type.
fn any_arguments(
    function: &'static ScalarFunction,
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<Operand> {
    let mut typed = Vec::with_capacity(arguments.operands.len());
    for operand in arguments.operands {
        typed.push(match typed.is_empty() {
            true => coerce::text(binding, operand)?,
            false => shown_as(binding, operand)?,
        });
    }
    Ok(binding.call(function, typed, DataType::TEXT))
}

/// An argument of the type in which it is shown. A `FLOAT` is shown as the double with its digits, and
/// not as the one that holds it.
fn shown_as(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::TEXT);
    if binding.data_type(&operand) != DataType::Float32 {
        return Ok(operand);
    }
    let digits = binding.cast(operand, DataType::TEXT)?;
    binding.cast(digits, DataType::Float64)
}

/// How one argument is shown.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    /// `<`, `>` or `^`.
    align: Option<char>,
    /// What a number that is not negative begins with.
    sign: Option<char>,
    zeros: bool,
    /// Whether commas divide thousands.
    groups: bool,
    width: usize,
    precision: Option<usize>,
    /// The letter of the conversion, if there is one.
    kind: Option<char>,
}

/// The placeholder that comes next in a text: the number of its argument, if it names one, and how
/// that is shown. Appends what comes before it. `None` at the end of the text.
type Next = fn(&mut Peekable<Chars<'_>>, &mut String) -> Result<Option<(Option<usize>, Spec)>>;

fn filled(row: &RowCall<'_>, next: Next) -> Result<Value> {
    let pattern = row.text(0).into_owned();
    let (mut rest, mut out, mut at) = (pattern.chars().peekable(), String::new(), 0);
    while let Some((named, spec)) = next(&mut rest, &mut out)? {
        at += 1;
        let Some(value) = row.args.get(named.map_or(at, |n| n.saturating_add(1))) else {
            return Err(row.error("fewer arguments than placeholders", "22023"));
        };
        check_length(out.len().saturating_add(spec.width))?;
        out += &spec.padded(value)?;
        check_length(out.len())?;
    }
    text(out)
}

fn bad(what: &str) -> Error {
    Error::type_error(format!("{what} in a format")).with_sqlstate("22023")
}

/// A number, the same on every host: where one is too large for a `usize`, its checks refuse it.
fn number(rest: &mut Peekable<Chars<'_>>) -> Result<Option<usize>> {
    let mut found: Option<u64> = None;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        let longer = found.unwrap_or(0).checked_mul(10).map(|n| n.saturating_add(digit.into()));
        found = Some(longer.ok_or_else(|| bad("too large a number"))?);
        rest.next();
    }
    Ok(found.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

/// Reads `[width][.precision][kind]`.
fn sized(rest: &mut Peekable<Chars<'_>>, spec: &mut Spec) -> Result<()> {
    spec.width = number(rest)?.unwrap_or(0);
    if rest.next_if_eq(&',').is_some() {
        spec.groups = true;
    }
    if rest.next_if_eq(&'.').is_some() {
        spec.precision = Some(number(rest)?.unwrap_or(0));
    }
    Ok(())
}

fn percent(
    rest: &mut Peekable<Chars<'_>>,
    out: &mut String,
) -> Result<Option<(Option<usize>, Spec)>> {
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = rest.next_if(|c| "-+ 0,'".contains(*c)) {
            match flag {
                '-' => spec.align = Some('<'),
                '0' => spec.zeros = true,
                ',' | '\'' => spec.groups = true,
                sign if spec.sign != Some('+') => spec.sign = Some(sign),
                _ => {}
            }
        }
        sized(rest, &mut spec)?;
        while rest.next_if(|c| "hlqjzt".contains(*c)).is_some() {}
        spec.kind = Some(rest.next().ok_or_else(|| bad("a % without a letter"))?);
        spec.align = spec.align.or(Some('>'));
        return Ok(Some((None, spec)));
    }
    Ok(None)
}

fn braces(
    rest: &mut Peekable<Chars<'_>>,
    out: &mut String,
) -> Result<Option<(Option<usize>, Spec)>> {
    while let Some(c) = rest.next() {
        if c != '{' && c != '}' || rest.next_if_eq(&c).is_some() {
            out.push(c);
            continue;
        }
        if c == '}' {
            return Err(bad("a } without a {"));
        }
        let named = number(rest)?;
        let mut spec = Spec::default();
        if rest.next_if_eq(&':').is_some() {
            let mut ahead = rest.clone();
            let (first, second) = (ahead.next(), ahead.next());
            let is_align = |c: Option<char>| c.is_some_and(|c| "<>^".contains(c));
            if is_align(second) {
                (spec.fill, spec.align) = (rest.next(), rest.next());
            } else if is_align(first) {
                spec.align = rest.next();
            }
            spec.sign = rest.next_if(|c| "+- ".contains(*c)).filter(|sign| *sign != '-');
            spec.zeros = rest.next_if_eq(&'0').is_some();
            sized(rest, &mut spec)?;
            spec.kind = rest.next_if(|c| c.is_ascii_alphabetic());
        }
        if rest.next() != Some('}') {
            return Err(bad("a { without a }, or an unknown placeholder"));
        }
        return Ok(Some((named, spec)));
    }
    Ok(None)
}

impl Spec {
    /// Shows a value in at least as many characters as the width.
    fn padded(&self, value: &Value) -> Result<String> {
        let is_number = matches!(
            value,
            Value::Int(_) | Value::UInt(_) | Value::Decimal { .. } | Value::Float(_)
        );
        let numeric = is_number && !matches!(self.kind, Some('s' | 'c'));
        let shown = self.shown(value)?;
        let missing = self.width.saturating_sub(shown.chars().count());
        if missing == 0 {
            return Ok(shown);
        }
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        Ok(match self.align {
            Some('<') => shown + &fill(missing),
            Some('^') => fill(missing / 2) + &shown + &fill(missing - missing / 2),
            _ if self.zeros && numeric && self.fill.is_none() => {
                let sign = shown.len() - shown.trim_start_matches(['-', '+', ' ']).len();
                format!("{}{}{}", &shown[..sign], "0".repeat(missing), &shown[sign..])
            }
            Some(_) => fill(missing) + &shown,
            None if numeric => fill(missing) + &shown,
            None => shown + &fill(missing),
        })
    }

    fn shown(&self, value: &Value) -> Result<String> {
        let kind = match (self.kind, value) {
            (Some(kind), _) => kind,
            (None, Value::Float(_) | Value::Decimal { .. }) if self.precision.is_some() => 'f',
            (None, Value::Int(_) | Value::UInt(_)) => 'd',
            (None, Value::Decimal { .. } | Value::Float(_)) => {
                return Ok(self.signed(value.to_string()));
            }
            (None, _) => 's',
        };
        match kind {
            'd' | 'i' | 'u' => Ok(self.signed(integer(value, kind)?.to_string())),
            'x' => Ok(format!("{:x}", bits(integer(value, kind)?)?)),
            'X' => Ok(format!("{:X}", bits(integer(value, kind)?)?)),
            'o' => Ok(format!("{:o}", bits(integer(value, kind)?)?)),
            'b' => Ok(format!("{:b}", bits(integer(value, kind)?)?)),
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => self.real(value, kind),
            's' => {
                let text = value.to_string();
                Ok(match self.precision {
                    Some(most) => text.chars().take(most).collect(),
                    None => text,
                })
            }
            'c' => match value {
                Value::Text(text) => Ok(text.chars().take(1).collect()),
                _ => {
                    let code = u32::try_from(integer(value, kind)?).ok().and_then(char::from_u32);
                    code.map(String::from).ok_or_else(|| bad("a number that is no character"))
                }
            },
            other => Err(bad(&format!("an unknown conversion {other}"))),
        }
    }

    /// Adds the sign and the commas of a number.
    fn signed(&self, shown: String) -> String {
        let negative = shown.starts_with('-');
        let digits = shown.trim_start_matches('-');
        let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
        let mut out = String::new();
        match (negative, self.sign) {
            (true, _) => out.push('-'),
            (false, sign) => out.extend(sign),
        }
        for (at, digit) in digits[..whole].chars().enumerate() {
            if self.groups && at > 0 && (whole - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        out + &digits[whole..]
    }

    fn real(&self, value: &Value, kind: char) -> Result<String> {
        let precision = self.precision.unwrap_or(6);
        if precision > MAX_DIGITS {
            return Err(bad("too many digits"));
        }
        if let ('f' | 'F', Value::Decimal { unscaled, scale }) = (kind, value)
            && let Ok(digits) = u8::try_from(precision)
            && let Some(unscaled) = decimal::rescale(*unscaled, *scale, digits)
        {
            return Ok(self.signed(Value::Decimal { unscaled, scale: digits }.to_string()));
        }
        let v = float(value, kind)?;
        let shown = match kind.to_ascii_lowercase() {
            'f' => format!("{v:.precision$}"),
            'e' => scientific(v, precision),
            _ => shortest(v, precision.max(1)),
        };
        let shown = match v.is_finite() {
            true => shown,
            false => v.to_string().to_ascii_lowercase(),
        };
        let shown = if kind.is_ascii_uppercase() { shown.to_ascii_uppercase() } else { shown };
        Ok(self.signed(shown))
    }
}

fn integer(value: &Value, kind: char) -> Result<i128> {
    match value {
        Value::Int(v) => Ok(i128::from(*v)),
        Value::UInt(v) => Ok(i128::from(*v)),
        Value::Boolean(v) => Ok(i128::from(*v)),
        Value::Decimal { unscaled, scale: 0 } => Ok(*unscaled),
        _ => Err(bad(&format!("no integer for the conversion {kind}"))),
    }
}

/// The 64 bits of an integer.
fn bits(v: i128) -> Result<u64> {
    let signed = i64::try_from(v).map(|v| v as u64);
    signed.or(u64::try_from(v)).map_err(|_| bad("a number of more than 64 bits"))
}

fn float(value: &Value, kind: char) -> Result<f64> {
    match value {
        Value::Float(v) => Ok(*v),
        Value::Decimal { unscaled, scale } => Ok(decimal::to_f64(*unscaled, *scale)),
        _ => Ok(integer(value, kind)? as f64),
    }
}

/// `1.5e+03`, as C writes it.
fn scientific(v: f64, precision: usize) -> String {
    let shown = format!("{v:.precision$e}");
    match shown.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => shown,
    }
}

/// The shorter of both forms, without zeros at its end, as `%g` of C.
fn shortest(v: f64, digits: usize) -> String {
    let exponent = format!("{v:.*e}", digits - 1);
    let exponent: i64 = exponent.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let is_plain = exponent >= -4 && exponent < digits as i64;
    let shown = match is_plain {
        true => format!("{v:.*}", (digits as i64 - 1 - exponent).max(0) as usize),
        false => scientific(v, digits - 1),
    };
    let (number, rest) = shown.split_at(shown.find('e').unwrap_or(shown.len()));
    match number.contains('.') {
        true => format!("{}{rest}", number.trim_end_matches('0').trim_end_matches('.')),
        false => shown,
    }
}
