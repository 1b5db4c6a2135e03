//! Trigonometry and whole numbers.

use super::Call;
use nacre_sql::Builtin as B;
use nacre_types::{Result, Value};

impl Call<'_> {
    /// `None`: not a function of this file.
    pub(super) fn number(&self) -> Result<Option<Value>> {
        let x = self.double(0);
        let unit =
            || if (-1.0..=1.0).contains(&x) || x.is_nan() { Ok(x) } else { Err(self.domain()) };
        let float = match self.function {
            B::Sin => x.sin(),
            B::Cos => x.cos(),
            B::Tan => x.tan(),
            B::Asin => unit()?.asin(),
            B::Acos => unit()?.acos(),
            B::Atan => x.atan(),
            B::Atan2 => x.atan2(self.double(1)),
            B::Sinh => x.sinh(),
            B::Cosh => x.cosh(),
            B::Tanh => x.tanh(),
            B::Asinh => x.asinh(),
            B::Acosh if x < 1.0 => return Err(self.domain()),
            B::Acosh => x.acosh(),
            B::Atanh if x.abs() >= 1.0 => return Err(self.domain()),
            B::Atanh => x.atanh(),
            B::Cot if x == 0.0 => return Err(self.domain()),
            B::Cot => x.tan().recip(),
            B::Cbrt => x.cbrt(),
            B::Degrees => x.to_degrees(),
            B::Radians => x.to_radians(),
            B::Pi => std::f64::consts::PI,
            B::Even => {
                // Away from zero to the next even number.
                let half = (x.abs() / 2.0).ceil() * 2.0;
                half.copysign(x)
            }
            _ => return self.whole(),
        };
        if float.is_infinite() && x.is_finite() {
            return Err(self.out_of_range());
        }
        Ok(Some(Value::Float(float)))
    }

    fn domain(&self) -> nacre_types::Error {
        self.error("the argument is outside what the function is defined for", "22003")
    }

    fn whole(&self) -> Result<Option<Value>> {
        let (a, b) = (self.int(0), self.int(1));
        let narrow = |v: u128| i64::try_from(v).map(Value::Int).map_err(|_| self.out_of_range());
        Ok(Some(match self.function {
            B::Factorial => {
                if !(0..=33).contains(&a) {
                    return Err(self.out_of_range());
                }
                Value::Decimal { unscaled: (1..=a as i128).product(), scale: 0 }
            }
            B::Gcd => narrow(gcd(a.unsigned_abs() as u128, b.unsigned_abs() as u128))?,
            B::Lcm => {
                let (a, b) = (a.unsigned_abs() as u128, b.unsigned_abs() as u128);
                narrow(if a == 0 || b == 0 { 0 } else { a / gcd(a, b) * b })?
            }
            B::BitCount => Value::Int(a.count_ones() as i64),
            B::IsNan => Value::Boolean(self.double(0).is_nan()),
            B::IsInfinite => Value::Boolean(self.double(0).is_infinite()),
            B::IsFinite => Value::Boolean(self.double(0).is_finite()),
            B::WidthBucket => {
                let (x, low, high, count) =
                    (self.double(0), self.double(1), self.double(2), self.int(3));
                if count <= 0 || low == high || !low.is_finite() || !high.is_finite() {
                    return Err(self
                        .error("needs at least one bucket between two different bounds", "2201G"));
                }
                let share = (x - low) / (high - low);
                Value::Int(match share {
                    s if s < 0.0 => 0,
                    s if s >= 1.0 => count.saturating_add(1),
                    s => (s * count as f64) as i64 + 1,
                })
            }
            _ => return Ok(None),
        }))
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
