//! `proctor compare`: runs or baselines side by side, with statistics.

use super::versus::{self, Alone, Files, How, Printed, Side};
use super::{Exit, Stop};
use crate::compare::family::Family;
use crate::report::versus::Versus;

/// Arguments of `proctor compare`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A side is the folder of a run, the file of a baseline, or a baseline's name; \
`SIDE::STRATEGY` is one strategy of it. All others are compared with the first."
)]
pub(super) struct Args {
    /// What is compared: the baseline first
    #[arg(value_name = "SIDE", num_args = 2.., required = true)]
    sides: Vec<String>,
    /// Compare every side with every other
    #[arg(long)]
    all_pairs: bool,
    /// Seed of the resampling tests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    how: How,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
    /// Also write the comparison to this file: .md, .json, .txt, .junit.xml, .bmf.json, or .svg for a
    /// forest plot (repeatable)
    #[arg(short, long, value_name = "FILE")]
    output: Vec<std::path::PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let files = Files {
        comparison_output: args.output.clone(),
    };
    files.check_ungated()?;
    let sides: Vec<Side> = args
        .sides
        .iter()
        .map(|typed| Side::find(typed, &args.how.baselines))
        .collect::<Result<_, _>>()?;
    let firsts = if args.all_pairs { sides.len() - 1 } else { 1 };
    let (mut versed, mut mismatches) = (Vec::new(), Vec::new());
    for (at, baseline) in sides.iter().enumerate().take(firsts) {
        for candidate in &sides[at + 1..] {
            let found =
                versus::compare(baseline, candidate, &args.how, None, Alone::Told, args.seed)?;
            versed.extend(found.versed);
            mismatches.extend(found.mismatches);
        }
    }
    if versed.is_empty() {
        return Err(Stop::new(Exit::NothingSelected, "nothing to compare").into());
    }
    let family = if args.all_pairs {
        Family::AllPairs
    } else {
        Family::OneBaseline
    };
    versus::adjust(&mut versed, family, args.seed);
    let versus = Versus::new(versed, mismatches, None);
    versus::show(&versus, None, None, &files, Printed::facts(args.json))
}
