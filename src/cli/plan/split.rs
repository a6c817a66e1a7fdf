//! `proctor plan --shards`: the division of a run among machines.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::{Exit, say, show, stop_with};
use crate::record::journal::Journal;
use crate::record::shard::{Division, MOST_SHARDS, Partition, work};
use crate::runner::Plan;

/// How a run is divided.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SplitOptions {
    /// Divide the sessions among this many shards, and print the share of each, in place of the costs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SHARDS)))]
    shards: Option<u32>,
    /// How sessions are divided: by their work, or by a hash of their ids
    #[arg(long, value_name = "cost|hash", value_parser = str::parse::<Division>, default_value = "cost", requires = "shards")]
    by: Option<Division>,
    /// Keep the plan in this folder, for `proctor run --plan`: each shard then reads its own sessions only.
    /// `proctor merge --out` may join the shards there
    #[arg(long, value_name = "DIR", requires = "shards")]
    out: Option<PathBuf>,
}

/// The share of one shard.
#[derive(Debug, Default, Clone)]
struct Share {
    sessions: usize,
    cells: usize,
    work: u64,
}

impl SplitOptions {
    pub(super) fn is_asked(&self) -> bool {
        self.shards.is_some()
    }

    /// Refuses to keep a plan that `run --plan` could not take.
    pub(super) fn check(&self, is_sized: bool) -> anyhow::Result<()> {
        if is_sized && self.out.is_some() {
            let problem = "a plan is kept of the sessions as the scenario has them, and `--usd` chooses among them";
            let hint = "leave out `--out`: `proctor run --usd --partition` makes the same choice in each part";
            return stop_with(Exit::Usage, problem, hint);
        }
        Ok(())
    }

    /// Prints the shards, and keeps the plan where a folder is named.
    pub(super) fn show(&self, plan: &Plan, is_json: bool) -> anyhow::Result<Exit> {
        let (of, by) = (self.shards.unwrap_or(1), self.by.unwrap_or(Division::Cost));
        let manifest = plan.manifest();
        let mut shares = vec![Share::default(); of as usize];
        let shards = by.shards(of, manifest);
        for (at, shard) in shards.into_iter().enumerate() {
            let share = &mut shares[shard as usize - 1];
            share.sessions += 1;
            share.cells += manifest.cells_of(at);
            share.work += work(manifest, at);
        }
        let all: u64 = shares.iter().map(|share| share.work).sum();
        let most = shares
            .iter()
            .map(|share| share.work)
            .max()
            .unwrap_or_default();
        let mean = all as f64 / f64::from(of);
        let most_over_mean = most as f64 / mean.max(1.0);
        let folder = self.out.as_ref().map(|out| out.display().to_string());
        if let Some(out) = &self.out {
            Journal::open(out, manifest)?.keep_sources(plan.sources())?;
        }
        let part = |shard| Partition { by, shard, of }.to_string();
        let shown = shares.iter().zip(1..).map(|(share, shard)| {
            json!({
                "part": part(shard),
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
            "most_over_mean": most_over_mean,
            "folder": folder,
        });
        let text = include_str!("../text/shards.txt");
        show(is_json, "proctor-plan-shards", facts, text)?;
        if let Some(folder) = folder {
            say(&format!(
                "the plan is kept in `{folder}`: `--plan` names it, beside `--partition {}` and the words of this scenario",
                part(1)
            ));
        }
        Ok(Exit::Done)
    }
}
