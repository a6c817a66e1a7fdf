//! What is put on trial: every preset and control, and each kind of stage with work to do.

use proctor::settings::SettingTable;
use proctor::strategy::StrategySpec;
use proctor::strategy::preset::PRESETS;
use proctor::strategy::trigger::Trigger;

use crate::support::strategy;

/// The preset as it has something to do in these windows: thresholds that lie above them are lower, and
/// the stage that clears by time is on.
fn early(name: &str) -> String {
    let over = "tokens_over = 2000";
    let results = "offload_results.max_total_chars=4000,micro.enabled=true";
    // What is put back has to leave room below that.
    let restored = "restore.max_tokens_per_file=200,restore.total_tokens=500";
    let overrides = match name {
        "aloop-deletion" => format!("drop_oldest.when={{ {over} }}"),
        "learn-claude-code-s08-unguarded" | "aloop-sliding-window" | "aloop-selective" => {
            format!("summarize.when={{ {over} }}")
        }
        "aloop-rfc005" => format!("truncate_output.max_tokens=300,summarize.when={{ {over} }}"),
        "anthropic-clear-tool-uses" => format!("clear_results.when={{ {over} }}"),
        "codex" => "truncate_output.max_tokens=300".to_owned(),
        "claude-code" | "claude-code-snip-drop" | "claude-code-cached-micro" => {
            format!("{results},{restored},summarize.when={{ {over} }}")
        }
        "claude-code-session-memory" => format!(
            "{results},session_memory.when={{ {over} }},\
             session_memory.init_tokens=500,session_memory.update_every_tokens=400,\
             session_memory.min_tokens=600,session_memory.reserve_tokens=1000,\
             {restored},summarize.when={{ all = [{{ {over} }}, {{ unless = 'session_memory' }}] }}"
        ),
        "manual-phases" => {
            format!("{results},{restored},summarize.when={{ any = ['marker', {{ {over} }}] }}")
        }
        "claude-code-collapse" | "claude-code-reactive-only" => {
            format!("{results},{restored}")
        }
        _ => return name.to_owned(),
    };
    format!("{name}[{overrides}]")
}

/// Strategies to put on trial: all presets and controls, and [`stages`].
pub(super) fn on_trial() -> Vec<StrategySpec> {
    let presets = PRESETS.iter().map(|(name, _)| strategy(&early(name)));
    let controls = ["tail@2000", "random@2000", "tail@observation-masking", "random@none"];
    presets.chain(controls.map(strategy)).chain(stages()).collect()
}

/// A strategy of these stages, which fire at every call unless they say when.
pub(super) fn own(name: &str, text: &str) -> StrategySpec {
    let table = SettingTable::parse(name, text).unwrap();
    StrategySpec::of(name, table, &Trigger::always()).unwrap()
}

/// Each stage on its own, in several settings.
pub(super) fn stages() -> Vec<StrategySpec> {
    let mut specs = Vec::new();
    specs.push(own(
        "drop-rounds",
        "[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\n[overflow]\nstage = 'drop_oldest'",
    ));
    for pinned in [0, 2, 5] {
        specs.push(own(
            &format!("drop-rounds-{pinned}"),
            &format!("[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\npin_first = {pinned}"),
        ));
    }
    for (at, stages) in [
        // The results of one turn may be larger than what is protected.
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'clear_results'\nprotect_tokens = 500\nmin_gain_tokens = 400\nmin_chars = 40",
        "[[stage]]\nkind = 'clear_results'\nprotect_turns = 1\nkeep_last = 4\nmin_chars = 40\nmode = 'cache_edit'",
        "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\nevery = 3\nmin_chars = 30\nexcept_tools = ['class:edit', 'compact']",
        "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\nmin_chars = 40\nguards.min_gain_tokens = 1_000",
    ]
    .iter()
    .enumerate()
    {
        specs.push(own(&format!("clear-{at}"), stages));
    }
    specs.push(own(
        "dedupe",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'dedupe_reads'\nsupersede = true",
    ));
    let memory = "[[stage]]\nkind = 'session_memory'\ninit_tokens = 500\nupdate_every_tokens = 400\nmin_tokens = 600\nreserve_tokens = 1_000";
    specs.push(own("memory", &format!("{memory}\nwhen = {{ tokens_over = 2_000 }}")));
    specs.push(own("memory-always", memory));
    // What is put back can be one thing too many again.
    specs.push(own(
        "restore",
        "breaks = ['idempotent_at_rest']\n[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.3\n[[stage]]\nkind = 'restore'\nmax_tokens_per_file = 600",
    ));
    specs.push(own(
        "collapse",
        "[[stage]]\nkind = 'collapse_groups'\ncommit_at = 0.5\ntarget = 0.3\nmax_output_tokens = 30",
    ));
    for knobs in ["unit = 'pair'", "unit = 'pair'\nfraction = 0.4", "fraction = 1"] {
        specs.push(own(
            &format!("drop-{knobs}"),
            &format!("[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\n{knobs}"),
        ));
    }
    specs.push(own(
        "clear-inputs",
        "[[stage]]\nkind = 'clear_inputs'\nmax_chars = 40\nkeep_last = 2\n[[stage]]\nkind = 'clear_thinking'",
    ));
    specs.push(own("digest", "[[stage]]\nkind = 'digest'\nwhen = { tokens_over = 2_000 }"));
    specs.push(own(
        "digest-always",
        "[[stage]]\nkind = 'digest'\ncut = 'pair'\ntarget_tokens = 200",
    ));
    for method in ["lead", "textrank", "tfidf", "bm25_last_user", "atoms"] {
        specs.push(own(
            method,
            &format!("[[stage]]\nkind = 'select'\nbudget_fraction = 0.3\nmethod = '{method}'"),
        ));
    }
    for marks in ["[]", "['tool', 'tag', 'read_then_edited']"] {
        specs.push(own(
            &format!("snip-{}", marks.len()),
            &format!("[[stage]]\nkind = 'snip'\nmarks = {marks}"),
        ));
    }
    specs.push(own(
        "drop-messages",
        "breaks = ['valid_context']\n[[stage]]\nkind = 'drop_oldest'\nunit = 'message'\npin_first = 0\nfit_fraction = 0.3",
    ));
    specs.push(own(
        "summarise-early",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 2_000 }",
    ));
    specs.push(own(
        "summarise-and-keep",
        "[[stage]]\nkind = 'summarize'\nwhen = { messages_over = 30 }\nkeep_last_messages = 4\ncut = 'round'",
    ));
    specs.push(own(
        "truncate",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'truncate_output'\nmax_tokens = 100\nexcept_tools = ['class:edit']",
    ));
    specs.push(own(
        "offload-each",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'offload_results'\nscope = 'each'\nmax_total_chars = 500\npreview_chars = 50\npreview_tail_chars = 20",
    ));
    specs.push(own(
        "offload-last",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'offload_results'\nmax_total_chars = 2000\npreview_chars = 100",
    ));
    // Nothing stops a placeholder that is longer than the little it stands for.
    let middle =
        "[[stage]]\nkind = 'drop_middle'\nmax_messages = 12\nguards.on_inflation = 'apply'";
    for cut in ["pair", "batch", "round"] {
        specs.push(own(
            &format!("middle-{cut}"),
            &format!("breaks = ['never_larger']\n{middle}\ncut = '{cut}'"),
        ));
    }
    specs.push(own(
        "middle-none",
        &format!("breaks = ['valid_context', 'never_larger']\n{middle}\ncut = 'none'"),
    ));
    // What breaks without a guard is repaired, either way; answers that are added make one message
    // too many again.
    for (name, knobs) in [
        ("repaired", ""),
        ("repaired-by-dropping", "missing_result = 'drop_call'\norphan_result = 'to_text'"),
    ] {
        specs.push(own(
            name,
            &format!(
                "breaks = ['never_larger', 'idempotent_at_rest']\n{middle}\ncut = 'none'\n[[stage]]\nkind = 'normalize'\n{knobs}"
            ),
        ));
    }
    specs
}

/// A stage of this kind with something to do, and what has to happen before: knobs, and a stage
/// that leaves it work. A kind that is not named here works with its defaults.
pub(super) fn at_work(kind: &str) -> (&'static str, &'static str) {
    let dropping =
        "[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.3\nwhen = { rounds_every = 1 }\n";
    let breaking = "[[stage]]\nkind = 'drop_middle'\nmax_messages = 12\ncut = 'none'\n\
         when = { rounds_every = 1 }\nguards.on_inflation = 'apply'\n";
    match kind {
        "truncate_output" => ("max_tokens = 100", ""),
        "offload_results" => ("max_total_chars = 500\npreview_chars = 50", ""),
        "snip" => ("marks = ['tool', 'tag', 'read_then_edited']", ""),
        "drop_middle" => ("max_messages = 12", ""),
        "clear_results" => ("keep_last = 4\nmin_chars = 40", ""),
        "drop_calls" => ("keep_last_messages = 4", ""),
        "drop_oldest" => ("fit_fraction = 0.5", ""),
        "clear_inputs" => ("max_chars = 40\nkeep_chars = 10", ""),
        "select" => ("budget_tokens = 2_000", ""),
        "summarize" => ("guards.on_inflation = 'apply'", ""),
        "session_memory" => (
            "init_tokens = 500\nupdate_every_tokens = 400\nmin_tokens = 600\nreserve_tokens = 1_000",
            "",
        ),
        "normalize" => ("guards.on_inflation = 'apply'", breaking),
        "restore" => ("max_tokens_per_file = 300\nguards.on_inflation = 'apply'", dropping),
        _ => ("", ""),
    }
}
