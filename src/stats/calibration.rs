//! Calibration: how far a judge says what people say, and what its verdicts are worth then.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agreement::cohens_kappa;
use super::wilson;

/// Human labels below which no judge is called calibrated.
pub const LEAST_LABELS: usize = 100;

/// κ below which a judge is unfit: "substantial" agreement begins here (Landis and Koch, 1977).
pub const LEAST_KAPPA: f64 = 0.6;

/// Sensitivity and specificity together, below which a judge is unfit: at 1 it says nothing, and
/// the correction divides by what is above 1.
pub const LEAST_BOTH: f64 = 1.6;

/// 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// One judged answer that people graded, too: `human` and `judge` say whether it is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelledAnswer {
    /// The label by people.
    pub human: bool,
    /// The verdict of the judge.
    pub judge: bool,
}

/// A share, and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The share.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Rate {
    /// Of the answers that people label so, the share of which the judge says the same.
    fn of(labelled: &[LabelledAnswer], human: bool) -> Option<Self> {
        let these = labelled.iter().filter(|one| one.human == human);
        let n = these.clone().count() as f64;
        let value = these.filter(|one| one.judge == human).count() as f64 / n;
        let interval = wilson::interval(value, n)?;
        Some(Self { value, low: interval.lower_bound, high: interval.upper_bound })
    }
}

/// The quality of a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Answers with both a label and a verdict.
    pub labels: usize,
    /// The share of them that people call right.
    pub base_rate: f64,
    /// Cohen's κ between people and judge; `None` where chance alone agrees on everything.
    pub kappa: Option<f64>,
    /// Of the right answers, the share that the judge calls right (`q1`), with Wilson's interval.
    pub sensitivity: Option<Rate>,
    /// Of the wrong answers, the share that the judge calls wrong (`q0`), with Wilson's interval.
    pub specificity: Option<Rate>,
    /// Whether its verdicts may be believed.
    #[serde(rename = "verdict")]
    pub fitness: CalibrationStatus,
}

/// Whether a judge's verdicts may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Calibrated")]
pub enum CalibrationStatus {
    /// Enough labels, and it agrees with them.
    Calibrated,
    /// It agrees with the labels, and they are too few.
    Provisional,
    /// It does not agree with the labels.
    Unfit,
}

impl CalibrationStatus {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Provisional => "provisional",
            Self::Unfit => "unfit",
        }
    }
}

impl Calibration {
    /// Compares a judge with people; `None` without a label.
    pub fn of(labelled: &[LabelledAnswer]) -> Option<Self> {
        let labels = labelled.len();
        if labels == 0 {
            return None;
        }
        let pairs: Vec<(bool, bool)> = labelled.iter().map(|one| (one.human, one.judge)).collect();
        let kappa = cohens_kappa(&pairs);
        let [sensitivity, specificity] = [true, false].map(|human| Rate::of(labelled, human));
        let both = sensitivity.zip(specificity);
        let agrees = kappa.is_some_and(|kappa| kappa >= LEAST_KAPPA)
            && both.is_some_and(|(q1, q0)| q0.value + q1.value >= LEAST_BOTH);
        let right = labelled.iter().filter(|one| one.human).count();
        Some(Self {
            labels,
            base_rate: right as f64 / labels as f64,
            kappa,
            sensitivity,
            specificity,
            fitness: match (agrees, labels >= LEAST_LABELS) {
                (true, true) => CalibrationStatus::Calibrated,
                (true, false) => CalibrationStatus::Provisional,
                (false, _) => CalibrationStatus::Unfit,
            },
        })
    }

    /// The share of answers that are right, of `judged` answers of which the judge calls `called`
    /// right: `θ = (p + q0 − 1)/(q0 + q1 − 1)` (Rogan and Gladen, 1978), kept within 0 and 1, with
    /// the interval of Lang and Reiczigel (*Confidence limits for prevalence of disease adjusted for
    /// estimated sensitivity and specificity*, 2014).
    ///
    /// It adds `z²/2` to the answers called right and `z²` to all (equations 6 and 7 there), and one
    /// success and one failure to the labels behind `q0` and `q1`, so that it has a width at the edges
    /// too: five labels without a mistake are no proof. With the numbers so made, `m0` and `m1` being
    /// the labelled wrong and right answers, the variance is that of the delta method (4),
    /// `(p(1−p)/n + (1−θ)² q0(1−q0)/m0 + θ² q1(1−q1)/m1)/(q0 + q1 − 1)²`, and its middle is moved
    /// by `2z²(θ q1(1−q1)/m1 − (1−θ) q0(1−q0)/m0)` (16 and 17). θ is kept within 0 and 1 in none of
    /// these, and the limits are.
    ///
    /// `None` where the judge is no better than chance, or a rate is unknown.
    pub fn corrected(&self, called: usize, judged: usize) -> Option<Rate> {
        let (q1, q0) = (self.sensitivity?.value, self.specificity?.value);
        let span = q0 + q1 - 1.0;
        if judged == 0 || span <= 0.0 {
            return None;
        }
        let n = judged as f64;
        let p = called as f64 / n;
        let theta = ((p + q0 - 1.0) / span).clamp(0.0, 1.0);
        let m1 = self.base_rate * self.labels as f64;
        let m0 = self.labels as f64 - m1;
        let (lower, upper) = adjusted_interval(
            (p * n + Z * Z / 2.0, n + Z * Z),
            (q0 * m0 + 1.0, m0 + 2.0),
            (q1 * m1 + 1.0, m1 + 2.0),
        )?;
        Some(Rate { value: theta, low: lower.min(theta), high: upper.max(theta) })
    }
}

/// The limits for the share of right answers, of what was called right, what was rightly called
/// wrong and what was rightly called right: each as a count and how many there are, already adjusted.
fn adjusted_interval(
    called: (f64, f64),
    wrong: (f64, f64),
    right: (f64, f64),
) -> Option<(f64, f64)> {
    let [p, q0, q1] = [called, wrong, right].map(|(count, of)| count / of);
    let span = q0 + q1 - 1.0;
    if span <= 0.0 {
        return None;
    }
    let theta = (p + q0 - 1.0) / span;
    let [of_called, of_wrong, of_right] =
        [(p, called.1), (q0, wrong.1), (q1, right.1)].map(|(share, of)| share * (1.0 - share) / of);
    let variance =
        (of_called + (1.0 - theta).powi(2) * of_wrong + theta.powi(2) * of_right) / span.powi(2);
    let middle = theta + 2.0 * Z * Z * (theta * of_right - (1.0 - theta) * of_wrong);
    let half = Z * variance.sqrt();
    let [lower, upper] = [middle - half, middle + half].map(|end| end.clamp(0.0, 1.0));
    Some((lower, upper))
}

/// How often a judge says the same of the same answer: the share of answers all of whose verdicts
/// are the same, over those with at least two. `None` where none has.
pub fn self_consistency(verdicts: &[Vec<bool>]) -> Option<f64> {
    let several: Vec<&Vec<bool>> = verdicts.iter().filter(|said| said.len() >= 2).collect();
    if several.is_empty() {
        return None;
    }
    let same = several.iter().filter(|said| said.iter().all(|one| *one == said[0]));
    Some(same.count() as f64 / several.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many of each: both right, people only, judge only, both wrong.
    fn labelled(both: usize, human: usize, judge: usize, neither: usize) -> Vec<LabelledAnswer> {
        [(true, true, both), (true, false, human), (false, true, judge), (false, false, neither)]
            .into_iter()
            .flat_map(|(human, judge, count)| vec![LabelledAnswer { human, judge }; count])
            .collect()
    }

    #[track_caller]
    fn check(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn a_judge_is_calibrated_with_enough_labels_and_agreement() {
        let fitness = |both, human, judge, neither| {
            Calibration::of(&labelled(both, human, judge, neither)).unwrap().fitness
        };
        assert_eq!(fitness(55, 5, 4, 36), CalibrationStatus::Calibrated);
        assert_eq!(fitness(11, 1, 1, 7), CalibrationStatus::Provisional);
        assert_eq!(fitness(40, 20, 20, 20), CalibrationStatus::Unfit);
        // All right and all called right: chance alone does that.
        assert_eq!(fitness(200, 0, 0, 0), CalibrationStatus::Unfit);
        assert_eq!(Calibration::of(&[]), None);
    }

    #[test]
    fn the_correction_is_that_of_rogan_and_gladen() {
        // q1 = 0.9, q0 = 0.8, 100 labels of each; the judge calls 590 of 1,000 right.
        let judge = Calibration::of(&labelled(90, 10, 20, 80)).unwrap();
        let Rate { value: theta, low, high } = judge.corrected(590, 1_000).unwrap();
        check(theta, (0.59 + 0.8 - 1.0) / 0.7);
        // The delta method without its adjustments is near where there is much of everything.
        let variance = (0.59 * 0.41 / 1_000.0
            + (1.0 - theta).powi(2) * 0.8 * 0.2 / 100.0
            + theta.powi(2) * 0.9 * 0.1 / 100.0)
            / 0.49;
        let half = Z * variance.sqrt();
        assert!(((high - low) / 2.0 / half - 1.0).abs() < 0.05);
        assert!(low < theta && theta < high);
        // On the labelled answers themselves it gives back what people say.
        check(judge.corrected(110, 200).unwrap().value, 0.5);
        let blind = Calibration::of(&labelled(50, 50, 50, 50)).unwrap();
        assert_eq!(blind.corrected(1, 2), None);
    }

    #[test]
    fn few_labels_without_a_mistake_are_no_proof() {
        let judge = Calibration::of(&labelled(3, 0, 0, 2)).unwrap();
        let rate = judge.corrected(40, 40).unwrap();
        check(rate.value, 1.0);
        check(rate.high, 1.0);
        assert!(rate.low < 0.9, "{rate:?}");
        let rate = judge.corrected(0, 40).unwrap();
        check(rate.value, 0.0);
        assert!(rate.high > 0.1, "{rate:?}");
    }

    /// Worked out apart from this code from equations 4, 6, 7, 16 and 17 of the paper, in decimal
    /// arithmetic of 30 digits.
    #[test]
    fn the_limits_are_those_of_lang_and_reiczigel() {
        for (labels, (called, judged), lower, upper) in [
            ((90, 10, 20, 80), (590, 1000), 0.474_697_650_742, 0.640_975_982_449),
            ((18, 2, 3, 17), (2, 60), 0.0, 0.048_605_850_583),
            ((9, 1, 1, 9), (38, 40), 0.848_609_802_035, 1.0),
            ((45, 5, 0, 50), (0, 30), 0.0, 0.140_529_312_528),
            ((60, 0, 8, 42), (120, 120), 0.955_647_963_462, 1.0),
        ] {
            let (both, human, judge, neither) = labels;
            let calibration = Calibration::of(&labelled(both, human, judge, neither)).unwrap();
            let rate = calibration.corrected(called, judged).unwrap();
            check(rate.low, lower);
            check(rate.high, upper);
        }
    }

    /// Probabilities of 0 to n successes.
    fn binomial(n: usize, share: f64) -> Vec<f64> {
        let mut row = vec![1.0];
        for _ in 0..n {
            let mut next = vec![0.0; row.len() + 1];
            for (at, one) in row.iter().enumerate() {
                next[at] += one * (1.0 - share);
                next[at + 1] += one * share;
            }
            row = next;
        }
        row
    }

    /// Summed over every outcome of 20 labels of each kind and 60 judged answers.
    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        for (share, q0, q1) in [(0.5, 0.9, 0.9), (0.9, 0.9, 0.95), (0.2, 0.95, 0.85)] {
            let called = share * q1 + (1.0 - share) * (1.0 - q0);
            let (wrong, right) = (binomial(20, q0), binomial(20, q1));
            let mut covered = 0.0;
            for (x, of_called) in binomial(60, called).into_iter().enumerate() {
                for (x0, of_wrong) in wrong.iter().enumerate() {
                    for (x1, of_right) in right.iter().enumerate() {
                        let (x, x0, x1) = (x as f64, x0 as f64, x1 as f64);
                        let limits = adjusted_interval(
                            (x + Z * Z / 2.0, 60.0 + Z * Z),
                            (x0 + 1.0, 22.0),
                            (x1 + 1.0, 22.0),
                        );
                        if limits.is_none_or(|(from, to)| from <= share && share <= to) {
                            covered += of_called * of_wrong * of_right;
                        }
                    }
                }
            }
            assert!((0.93..=0.998).contains(&covered), "{share} {q0} {q1}: {covered}");
        }
    }

    #[test]
    fn consistency_is_the_share_of_answers_with_one_verdict() {
        let said = [vec![true, true, true], vec![true, false], vec![false]];
        check(self_consistency(&said).unwrap(), 0.5);
        assert_eq!(self_consistency(&[vec![true]]), None);
    }
}
