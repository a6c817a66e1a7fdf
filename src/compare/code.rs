//! Codes of verdicts and warnings. Each is short enough to stand at the end of a line, and `proctor explain`
//! says more about it.

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes the codes, each from its name and its text.
macro_rules! codes {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// The code of a verdict or a warning. One that no code emits is a warning of the compiler.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
        #[serde(into = "&'static str")]
        #[schemars(with = "String")]
        pub(crate) enum NoteCode {
            $($name),*
        }

        impl From<NoteCode> for &'static str {
            fn from(code: NoteCode) -> Self {
                match code {
                    $(NoteCode::$name => $text),*
                }
            }
        }

        #[cfg(test)]
        const ALL: &[NoteCode] = &[$(NoteCode::$name),*];
    };
}

codes! {
    Use = "V1",
    Trade = "V2",
    Keep = "V3",
    Ahead = "V4",
    Undecided = "V5",
    FewSessions = "V6",
    PlainTail = "V7",
    NothingFires = "V8",
    AllBroken = "V9",
    NothingRan = "V10",
    NoOutcomes = "V11",
    Avoid = "V12",
    TurnsWith = "V13",
    TasksSolved = "V14",
    ReaderRefused = "V15",
    NoDifference = "V16",
    Prediction = "V17",
    Improved = "G1",
    NonInferior = "G2",
    Inconclusive = "G3",
    Regressed = "G4",
    Broken = "R1",
    NeverFired = "R2",
    NotMeasurable = "R3",
    OwnWindow = "R4",
    ControlsFailed = "W1",
    AllFailed = "W2",
    AttemptsFailed = "W3",
    Scripted = "W4",
    JudgeUnproven = "W5",
    JudgeMisses = "W6",
    LeftOut = "W7",
    EvidenceCeiling = "W8",
    TooLong = "W9",
    NeedsJudge = "W10",
    Faults = "W11",
    NotApplied = "W12",
    NotAsked = "W13",
    Outstanding = "W14",
    Failed = "W15",
    Unused = "W16",
    OneSession = "W17",
    SizesUnknown = "W18",
    SizesMixed = "W19",
    Twins = "W20",
    Stuck = "W21",
    Differs = "W22",
    Repriced = "W23",
    Repaired = "W24",
    SimulatedCost = "W25",
    PartlyKnown = "W26",
    Unpriced = "W27",
    NoFacts = "W28",
    WrittenByRules = "W29",
    Random = "W30",
    FiresEarly = "W31",
    Outline = "W32",
    NotComparable = "W33",
    Trust = "W34",
}

impl NoteCode {
    fn name(self) -> &'static str {
        self.into()
    }

    /// A sentence with the code behind it.
    pub(crate) fn behind(self, text: &str) -> String {
        format!("{text} [{self}]")
    }
}

impl fmt::Display for NoteCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A code as `proctor explain` shows it.
#[derive(Debug, Deserialize)]
pub struct CodeExplanation {
    /// The code.
    pub code: String,
    /// A few words.
    pub title: String,
    /// Its meaning, its cause, and the way out.
    pub text: String,
}

#[derive(Deserialize)]
struct CodesFile {
    code: Vec<CodeExplanation>,
}

/// All codes, in order.
pub fn explanations() -> Result<Vec<CodeExplanation>, toml::de::Error> {
    let file: CodesFile = toml::from_str(include_str!("codes.toml"))?;
    Ok(file.code)
}

/// The head of the page of codes.
const PAGE: &str = "# Codes\n\n\
    Made by the tests from `src/compare/codes.toml`. A verdict or a warning ends with its code in brackets, `[V3]`; in \
    JSON it is the field `code`. `proctor explain V3` prints the same paragraph, `proctor explain` the list. V: what a \
    run, a comparison or a sweep concludes. G: what the gate says. R: a remark on a row. W: a warning, or a note on how \
    far to trust the numbers.\n";

/// The page `docs/reference/codes.md`.
pub fn reference() -> Result<String, toml::de::Error> {
    let mut page = PAGE.to_owned();
    for CodeExplanation { code, title, text } in explanations()? {
        let _ = write!(page, "\n## {code}: {title}\n\n{}\n", text.trim());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler warns of a code that nothing emits, so the two together say that the file holds exactly
    /// the codes that are emitted.
    #[test]
    fn every_code_is_explained_and_no_other() {
        let explained = explanations().unwrap();
        let explained: Vec<&str> = explained.iter().map(|it| &*it.code).collect();
        let known: Vec<String> = ALL.iter().map(NoteCode::to_string).collect();
        assert_eq!(explained, known);
    }

    #[test]
    fn an_explanation_is_a_short_paragraph() {
        for CodeExplanation { code, title, text } in explanations().unwrap() {
            assert!(title.len() <= 60, "{code}: {title}");
            let words = text.split_whitespace().count();
            assert!((20..=110).contains(&words), "{code}: {words} words");
        }
    }
}
