//! The spending of a run itself on live models, before it is run.
//!
//! The length of a live model's answer is not known before: it lies between nothing and the longest
//! answer that is allowed. A summary of another length changes later prompts, too: the file `carry` says by
//! how much.

use std::ops::{Add, AddAssign};

use serde::{Serialize, Serializer};

use crate::units::{Tokens, Usd};

mod carry;
mod spend;

pub(crate) use spend::Tariff;
pub use spend::{Spend, ThinkingTokens};

/// Least, expected and most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ForecastRange<T> {
    /// The least that is possible.
    pub low: T,
    /// The value with the offline model.
    pub expected: T,
    /// The most that is possible.
    pub high: T,
}

impl<T: Copy> ForecastRange<T> {
    /// From the least to the most.
    fn new(low: T, expected: T, high: T) -> Self {
        Self { low, expected, high }
    }

    /// A span of one value.
    pub fn exact(value: T) -> Self {
        Self::new(value, value, value)
    }

    fn map<U: Copy>(self, each: impl Fn(T) -> U) -> ForecastRange<U> {
        self.zip(self, |value, _| each(value))
    }

    fn zip<U: Copy, V: Copy>(
        self,
        other: ForecastRange<U>,
        each: impl Fn(T, U) -> V,
    ) -> ForecastRange<V> {
        let (low, high) = (each(self.low, other.low), each(self.high, other.high));
        ForecastRange::new(low, each(self.expected, other.expected), high)
    }
}

impl ForecastRange<Tokens> {
    /// As far below and above another number.
    fn around(self, expected: Tokens) -> Self {
        Self::new(expected - self.less(), expected, expected + self.more())
    }

    fn less(self) -> Tokens {
        self.expected - self.low
    }

    fn more(self) -> Tokens {
        self.high - self.expected
    }
}

impl<T: Copy> ForecastRange<Option<T>> {
    /// The span where all three values are known.
    fn known(self) -> Option<ForecastRange<T>> {
        Some(ForecastRange::new(self.low?, self.expected?, self.high?))
    }
}

impl<T: Copy + Add<Output = T>> AddAssign for ForecastRange<T> {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip(other, Add::add);
    }
}

/// Adds a cost in money; what is unknown makes the sum unknown.
fn add_money<T: AddAssign>(sum: &mut Option<T>, more: Option<T>) {
    match (&mut *sum, more) {
        (Some(sum), Some(more)) => *sum += more,
        (_, _) => *sum = None,
    }
}

/// Writes money as dollars.
#[expect(clippy::ref_option, reason = "serde asks for it so")]
fn in_dollars<S: Serializer>(
    money: &Option<ForecastRange<Usd>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    money.map(|span| span.map(Usd::in_dollars)).serialize(serializer)
}

#[cfg(test)]
mod tests;
