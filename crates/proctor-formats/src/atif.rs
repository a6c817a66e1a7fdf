//! ATIF, the trajectories that Harbor writes for every agent it runs: one object with `steps`.
//!
//! Rules of this format (versions 1.0 to 1.7), beside those every importer shares:
//! - A step of the agent's is one call, and what its tools answered is in the same step. An answer
//!   without the id of a call is that of the step's only call, or else the environment's.
//! - The input of a call includes what was read from the cache.
//! - Trajectories of sub-agents may stand in the file: they are sessions of their own.

use super::prelude::*;

pub(super) const IMPORTER: Importer =
    Importer::new("atif", Detect::First("schema_version^ATIF"), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut sessions = Vec::new();
    for value in file.values(source)? {
        let Some(run) = Object::read(value.parse()?) else {
            source.not_understood("value that is no trajectory");
            continue;
        };
        let mut open = vec![run];
        while let Some(mut run) = open.pop() {
            let inner = run.items("subagent_trajectories").into_iter().rev();
            open.extend(inner.filter_map(Object::read));
            sessions.extend(trajectory(run).finish(file.id.clone(), &file.path)?);
        }
    }
    Ok(sessions)
}

fn trajectory(mut run: Object<'_>) -> Assembler {
    let mut assembler = Assembler::default();
    let mut agent = run.inner("agent");
    assembler.header.model = agent.take_text("model_name");
    for definition in agent.items("tool_definitions") {
        assembler.define_tool(definition);
    }
    for (at, raw) in run.items("steps").into_iter().enumerate() {
        let step = Object::read(raw).unwrap_or_default();
        read(at, step, raw, &mut assembler);
    }
    assembler
}

fn read(at: usize, mut step: Object<'_>, raw: &RawValue, assembler: &mut Assembler) {
    let time = step.take_time("timestamp", assembler);
    let who = step.take_text("source");
    if step.take_flag("is_copied_context") {
        assembler.warn("a step was copied from an earlier trajectory");
    }
    match who.as_deref() {
        Some(who @ ("system" | "user")) => {
            let said = step.take_blocks("message", Speaker::User, assembler);
            if who == "system" && assembler.is_empty() && assembler.header.system.is_none() {
                assembler.header.system = Some(joined_texts(&said).into());
            } else {
                let tag = if who == "user" { Tag::TypedUser } else { Tag::Meta };
                assembler.hear(None, said, time, [tag]);
            }
        }
        Some("agent") => agent(at, step, time, assembler),
        who => assembler.hear_unknown_role("step", who, raw, time),
    }
}

/// A step of the agent's, and what came of it.
fn agent(at: usize, mut step: Object<'_>, time: When, assembler: &mut Assembler) {
    let thought = step.take_words("reasoning_content");
    let mut blocks = Vec::from_iter(thought.map(|thought| ContentBlock::thinking(thought, None)));
    blocks.extend(step.take_blocks("message", Speaker::Assistant, assembler));
    let mut calls: BTreeSet<Arc<str>> = BTreeSet::new();
    for raw in step.items("tool_calls") {
        let mut call = Object::read(raw).unwrap_or_default();
        let id = call.take_text("tool_call_id");
        let Some((id, name)) = id.zip(call.take_text("function_name")) else {
            blocks.push(counted("malformed tool call", raw, assembler));
            continue;
        };
        calls.insert(id.clone());
        blocks.push(ContentBlock::tool_use(id, name, input_or_empty(call.take("arguments"))));
    }
    let billed = step.take_usage("metrics", CachedTokens::Within, assembler);
    let name = Some(format!("step {at}").into());
    let model = step.take_text("model_name");
    let part = ModelRecord::of(blocks, time).by(name, model, billed.and_then(unless_zero));
    assembler.assistant(None, part);
    for mut result in step.inner("observation").objects("results") {
        let told = result.take_blocks("content", Speaker::Tool, assembler);
        let only = calls.first().filter(|_| calls.len() == 1 && !result.has("source_call_id"));
        let text = result.take_text("source_call_id");
        match text.filter(|id| calls.contains(id)).or(only.cloned()) {
            Some(id) => assembler.hear_result(id, told, false, None),
            None => assembler.hear(None, told, None, [Tag::Meta]),
        }
    }
}
