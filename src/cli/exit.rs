//! Exit codes: documented, stable, in one place.

use std::process::ExitCode;

/// How the program ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: a mistake in Proctor, or the machine failed it.
    Internal,
    /// 2: the command line cannot be understood.
    Usage,
    /// 3: a scenario, session or settings file is invalid.
    Invalid,
    /// 4: the selection is empty.
    NothingSelected,
    /// 5: all that ran is fine, but cells are outstanding.
    Outstanding,
    /// 100: the gate failed: something got worse.
    GateFailed,
    /// 102: controls failed: the run says nothing, or a judge of it is unfit.
    ControlsFailed,
    /// 103: the gate is inconclusive, and that was to fail.
    GateInconclusive,
    /// 104: more cells failed, or more answers have no score, than `--max-error-rate` allows.
    TooManyFailures,
    /// 105: a recorded answer was wanted, and there is none.
    ReplayMiss,
    /// 106: a baseline is missing, or was measured by something else.
    Baseline,
    /// 107: the budget was reached before the least coverage.
    BudgetReached,
    /// 110: a file could not be written.
    NotWritten,
    /// 130: interrupted; what was done is kept, and the same command goes on.
    Interrupted,
}

impl Exit {
    /// All codes with their meaning, for `--help`.
    pub const HELP: &str = "Exit codes:
    0  done
    1  internal error
    2  wrong use of the command line
    3  scenario, session or settings invalid
    4  nothing selected
    5  cells are outstanding; what ran is fine
  100  the gate failed
  102  controls failed: the run is invalid, or a judge misses known verdicts
  103  the gate is inconclusive, with --fail-on inconclusive
  104  failed cells, or answers without a score, above --max-error-rate
  105  a recorded answer was wanted (--replay strict, --offline), and there is none
  106  baseline missing or incompatible
  107  the budget was reached before the least coverage
  110  a file could not be written
  130  interrupted; the same command goes on";

    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::NothingSelected => 4,
            Self::Outstanding => 5,
            Self::GateFailed => 100,
            Self::ControlsFailed => 102,
            Self::GateInconclusive => 103,
            Self::TooManyFailures => 104,
            Self::ReplayMiss => 105,
            Self::Baseline => 106,
            Self::BudgetReached => 107,
            Self::NotWritten => 110,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
