//! BM25: how much a word says about a text (Robertson and Zaragoza, *The Probabilistic Relevance
//! Framework: BM25 and Beyond*, 2009).

/// Saturation of a word's repetitions in a unit: the usual value.
const K1: f64 = 1.2;
/// How far long units are held back: the usual value.
const B: f64 = 0.75;

/// The weight of a word: its inverse document frequency, where `holding` of `all` units hold it.
pub(crate) fn rarity(all: usize, holding: usize) -> f64 {
    let (all, holding) = (all as f64, holding as f64);
    libm::log(1.0 + (all - holding + 0.5) / (holding + 0.5))
}

/// The gain from `count` repetitions of a word in a unit of this length.
pub(crate) fn gain(count: u32, length: u32, average: f64) -> f64 {
    let count = f64::from(count);
    let damped = count + K1 * (1.0 - B + B * f64::from(length) / average);
    count * (K1 + 1.0) / damped
}
