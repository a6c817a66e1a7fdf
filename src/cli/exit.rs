//! Exit codes: documented, stable, in one place.

use std::process::ExitCode;

/// How the program ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A mistake in Proctor, or the machine failed it.
    Internal = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// A scenario, session or settings file is invalid.
    Invalid = 3,
    /// The selection is empty.
    NothingSelected = 4,
    /// All that ran is fine, but cells are outstanding.
    Outstanding = 5,
    /// The gate failed: something got worse; or a checked strategy breaks a rule.
    GateFailed = 100,
    /// Controls failed: the run says nothing, or a judge of it is unfit.
    ControlsFailed = 102,
    /// The gate is inconclusive, and that was to fail.
    GateInconclusive = 103,
    /// More cells failed, or more answers have no score, than `--max-error-rate` allows.
    TooManyFailures = 104,
    /// A recorded answer was wanted, and there is none.
    ReplayMiss = 105,
    /// A baseline is missing, or was measured by something else.
    Baseline = 106,
    /// The budget was reached before the least coverage.
    BudgetReached = 107,
    /// A file could not be written.
    NotWritten = 110,
    /// Interrupted; finished work is kept, and the same command continues.
    Interrupted = 130,
}

impl Exit {
    /// All codes with their meaning, for `--help`.
    pub const HELP: &str = include_str!("text/exit_codes.txt");

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
