//! `proctor run --dry-run`: the requests and the cost of a run, and its division among machines.

use std::path::Path;

use serde_json::json;

use crate::cli::forecast::{
    Detectable, asks_live_models, detectable_in_words, spend_in_words, spend_of, strategies,
};
use crate::cli::{Exit, Result, prose, show, show_with, stop_with, terminal};
use crate::record::CellRecord;
use crate::record::journal::Journal;
use crate::record::shard::{Division, MOST_SHARDS, Partition, work};
use crate::runner::Plan;

/// An estimate in place of a run.
#[derive(Debug, Default, clap::Args)]
pub(super) struct DryRunOptions {
    /// Estimate the requests and the cost of the run, and run nothing
    #[arg(long, conflicts_with_all = [
        "output", "sort", "gate", "baseline", "save_baseline", "comparison_output", "apply", "partition",
    ])]
    pub(super) dry_run: bool,
    /// Divide the sessions among N machines, by their work or with `hash:N` by their ids, and print the share of each;
    /// `--out` keeps the plan in a folder, for `--plan` and for `proctor merge --out`
    #[arg(long, value_name = "N|hash:N", value_parser = shards, requires = "dry_run")]
    shards: Option<Shards>,
}

/// A number of shards, and how sessions are divided among them.
#[derive(Debug, Clone, Copy)]
struct Shards {
    of: u32,
    by: Division,
}

fn shards(typed: &str) -> Result<Shards, String> {
    let (by, number) = match typed.split_once(':') {
        Some((by, number)) => (by.parse::<Division>()?, number),
        None => (Division::Cost, typed),
    };
    let count = number.parse().ok().filter(|of| (1..=MOST_SHARDS).contains(of));
    let of = count.ok_or_else(|| format!("it must be a number from 1 to {MOST_SHARDS}"))?;
    Ok(Shards { of, by })
}

/// The share of one shard.
#[derive(Debug, Default, Clone)]
struct ShardShare {
    sessions: usize,
    cells: usize,
    work: u64,
}

impl DryRunOptions {
    /// Refuses to keep a plan that `run --plan` could not take.
    pub(super) fn check(&self, is_kept: bool, is_sized: bool) -> Result<()> {
        if self.shards.is_some() && is_kept && is_sized {
            let problem = "a plan is kept of the sessions as the scenario has them, and `--usd` chooses among them";
            let hint = "leave out `--out`: `proctor run --usd --partition` makes the same choice in each part";
            return stop_with(Exit::Usage, problem, hint);
        }
        Ok(())
    }

    /// Prints the estimate of a plan, or its shards.
    pub(super) fn show(
        &self,
        plan: &Plan,
        out: Option<&Path>,
        is_whole: bool,
        is_json: bool,
    ) -> Result<Exit> {
        if let Some(shards) = self.shards {
            return shards.show(plan, out, is_json);
        }
        let cells = plan.forecast()?;
        let spend = spend_of(plan, &cells);
        let records: Vec<CellRecord> = cells.into_iter().map(|cell| cell.record).collect();
        let manifest = plan.manifest();
        let facts = json!({
            "scenario": manifest.scenario,
            "fingerprint": manifest.fingerprint,
            "counter": manifest.counter,
            "sessions": manifest.sessions.len(),
            "cells": plan.cells().len(),
            "strategies": strategies(manifest, &records),
            "spend": spend,
            "detectable": Detectable::of(&plan.planted_items()),
        });
        let more = json!({
            "spend": spend_in_words(plan, &spend)?,
            "detectable": detectable_in_words(plan)?,
            "is_whole": is_whole,
            "columns": terminal().columns(),
        });
        let template = include_str!("../text/plan.txt");
        show_with(is_json, "proctor-plan", facts, more, template)?;
        if !is_json && asks_live_models(plan) {
            return prose::say(HOW_TO_KNOW_NOISE);
        }
        Ok(Exit::Done)
    }
}

const HOW_TO_KNOW_NOISE: &str = "Noise is not known before models were asked: run a few sessions with \
`--set repeats=2 --set models.answers=2` (with a judge, `--set models.judgements=2`), and \
`proctor report RUN --tables=noise` says which further repeat buys most.\n";

impl Shards {
    /// Prints the shards, and keeps the plan where a folder is named.
    fn show(self, plan: &Plan, out: Option<&Path>, is_json: bool) -> Result<Exit> {
        let Self { of, by } = self;
        let manifest = plan.manifest();
        let mut shares = vec![ShardShare::default(); of as usize];
        for (at, shard) in by.shards(of, manifest).into_iter().enumerate() {
            let share = &mut shares[shard as usize - 1];
            share.sessions += 1;
            share.cells += manifest.cells_of(at);
            share.work += work(manifest, at);
        }
        let works = shares.iter().map(|share| share.work);
        let (all, most) = (works.clone().sum::<u64>(), works.max().unwrap_or_default());
        let mean = all as f64 / f64::from(of);
        if let Some(out) = out {
            Journal::open(out, manifest)?.keep_sources(plan.sources())?;
        }
        let shown = shares.iter().zip(1..).map(|(share, shard)| {
            json!({
                "part": Partition { by, shard, of }.to_string(),
                "sessions": share.sessions,
                "cells": share.cells,
                "work": share.work,
            })
        });
        let facts = json!({
            "scenario": manifest.scenario,
            "fingerprint": manifest.fingerprint,
            "shards": shown.collect::<Vec<_>>(),
            "all": all.max(1),
            "most_over_mean": most as f64 / mean.max(1.0),
            "folder": out.map(|out| out.display().to_string()),
        });
        let text = include_str!("../text/shards.txt");
        show(is_json, "proctor-plan-shards", facts, text)?;
        if let Some(out) = out {
            let first = Partition { by, shard: 1, of };
            say!(
                "the plan is kept in `{}`: `--plan` names it, beside `--partition {first}` and the words of this scenario",
                out.display()
            );
        }
        Ok(Exit::Done)
    }
}
