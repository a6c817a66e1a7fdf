//! Names of metrics on the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

use crate::metric::name::called;

/// Takes one of these names, and says the right one of another word for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetricName(pub(super) &'static [&'static str]);

impl TypedValueParser for MetricName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        typed: &OsStr,
    ) -> Result<String, clap::Error> {
        if let Some(problem) = called(&typed.to_string_lossy(), self.0) {
            let refuse = move |_: &str| Err::<String, String>(problem.clone());
            return refuse.parse_ref(command, arg, typed);
        }
        PossibleValuesParser::new(self.0).parse_ref(command, arg, typed)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
