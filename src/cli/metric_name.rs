//! Names of metrics on the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

use crate::compare::Axis;
use crate::metric::name::called;

/// Takes the name of a metric of this kind, and says the right one of another word for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetricName(pub(super) fn(Axis) -> bool);

impl MetricName {
    fn names(self) -> Vec<&'static str> {
        let axes = Axis::ALL.into_iter().filter(|axis| (self.0)(*axis));
        axes.map(Axis::name).collect()
    }
}

impl TypedValueParser for MetricName {
    type Value = Axis;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        typed: &OsStr,
    ) -> Result<Axis, clap::Error> {
        let names = self.names();
        if let Some(problem) = called(&typed.to_string_lossy(), &names) {
            let refuse = move |_: &str| Err::<Axis, String>(problem.clone());
            return refuse.parse_ref(command, arg, typed);
        }
        let known = PossibleValuesParser::new(names).try_map(|name| {
            Axis::named(&name).ok_or_else(|| format!("no metric is called `{name}`"))
        });
        known.parse_ref(command, arg, typed)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().into_iter().map(PossibleValue::new)))
    }
}
