//! `proctor compare`: runs or baselines side by side, with statistics.

use super::comparison::{self, ComparisonArgs, OutputFormat, Side, Unpaired};
use super::{CliError, Exit};
use crate::compare::gate::Rules;
use crate::report::comparison::Comparisons;

/// Arguments of `proctor compare`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A side is the folder of a run, the file of a baseline, or a baseline's name; \
`SIDE::STRATEGY` is one strategy of it. All others are compared with the first."
)]
pub(super) struct Args {
    /// Runs or baselines to compare, the baseline first
    #[arg(value_name = "SIDE", num_args = 2.., required = true)]
    sides: Vec<String>,
    /// Compare every side with every other
    #[arg(long)]
    all_pairs: bool,
    #[command(flatten)]
    comparing: ComparisonArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    comparison::prepare_ungated(&args.comparing.output)?;
    let sides: Vec<Side> = args
        .sides
        .iter()
        .map(|typed| Side::find(typed, &args.comparing.options.baselines))
        .collect::<Result<_, _>>()?;
    let firsts = if args.all_pairs { sides.len() - 1 } else { 1 };
    let (mut comparisons, mut mismatches) = (Vec::new(), Vec::new());
    for (at, baseline) in sides.iter().enumerate().take(firsts) {
        for candidate in &sides[at + 1..] {
            let found = comparison::compare(
                baseline,
                candidate,
                &args.comparing.options,
                &Rules::default(),
                Unpaired::Reported,
                args.comparing.seed,
            )?;
            comparisons.extend(found.comparisons);
            mismatches.extend(found.mismatches);
        }
    }
    if comparisons.is_empty() {
        return Err(CliError::new(Exit::NothingSelected, "nothing to compare").into());
    }
    comparison::adjust(&mut comparisons);
    let comparisons = Comparisons::new(comparisons, mismatches, None);
    comparison::show(
        comparisons,
        &args.comparing.output,
        OutputFormat::of(&args.comparing),
    )
}
