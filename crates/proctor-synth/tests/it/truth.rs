//! The truth of a session, found a second time from its messages.

use super::*;

/// The providers' rules, written down a second time.
pub(crate) fn check_validity(session: &Session) {
    let messages = session.messages();
    assert_eq!(messages[0].role(), Role::User);
    assert_eq!(messages[messages.len() - 1].role(), Role::Assistant);
    assert_eq!(messages[messages.len() - 1].tool_uses().count(), 0);
    let mut ids = BTreeSet::new();
    let mut asked: Vec<String> = Vec::new();
    let mut last = None;
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { Role::User } else { Role::Assistant };
        assert_eq!(message.role(), expected, "message {at}");
        assert!(message.details.timestamp > last, "message {at} is not later than the one before");
        last = message.details.timestamp;
        assert!(message.model_text().iter().all(|text| !text.trim().is_empty()), "message {at}");
        let answered: Vec<String> =
            message.tool_results().map(|(_, result)| result.tool_use_id.to_string()).collect();
        if message.role() == Role::User {
            assert_eq!(answered, asked, "message {at} answers what was asked, in order");
            let first_text = message
                .content()
                .iter()
                .position(|block| !matches!(block, ContentBlock::ToolResult(_)))
                .unwrap_or(message.content().len());
            assert_eq!(first_text, answered.len(), "results come first in message {at}");
            assert_eq!(message.has_tag(Tag::TypedUser), answered.is_empty());
            assert!(message.details.api_call.is_none());
        } else {
            assert!(message.details.api_call.is_some());
            assert!(message.content().iter().any(|b| matches!(b, ContentBlock::Text(_))));
        }
        asked = message.tool_uses().map(|(_, tool_use)| tool_use.id.to_string()).collect();
        for id in &asked {
            assert!(ids.insert(id.clone()), "{id} is used twice");
        }
    }
}

/// What was planted stands where the truth says, once, and nothing else gives it away.
#[expect(clippy::expect_used, reason = "a helper of tests")]
pub(crate) fn check_truth(generated: &Generated) {
    let Generated { session, truth } = generated;
    let texts: Vec<String> = (0..session.messages().len()).map(|at| text_of(session, at)).collect();
    // All texts in one, and where each begins: no value spans two lines.
    let all = texts.join("\n");
    let mut starts = vec![0];
    starts.extend(texts.iter().map(|text| text.len() + 1));
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let fixed: Vec<&str> = session
        .system()
        .into_iter()
        .chain(session.tools().iter().map(proctor_sessions::ToolSchema::text))
        .map(AsRef::as_ref)
        .collect();
    let occurrences = |value: &str| -> Vec<usize> {
        assert!(fixed.iter().all(|text| !text.contains(value)), "{value}");
        let searched = memmem::Finder::new(value);
        let found = searched.find_iter(all.as_bytes());
        found.map(|at| starts.partition_point(|start| *start <= at) - 1).collect()
    };
    assert!(truth.facts.is_sorted_by(|a, b| a.id < b.id));
    for fact in &truth.facts {
        let id = &fact.id;
        assert!(is_valid_id(id));
        assert!(occurrences(id).is_empty(), "{id} travels with the session");
        assert!(fact.evidence.is_sorted());
        match &fact.fact {
            Fact::Recall { key, value } => {
                assert_eq!(occurrences(value), fact.evidence, "{id}: {value}");
                assert_eq!(fact.evidence.len(), 1);
                assert!(!fact.question.contains(value.as_str()));
                let line = texts[fact.evidence[0]].lines().find(|line| line.contains(value));
                let line = line.expect("a line with the value");
                assert!(key.split(' ').all(|word| line.contains(word)), "{key}: {line}");
            }
            Fact::Constraint { topic, statement, form } => {
                assert_eq!(occurrences(statement), fact.evidence, "{id}");
                assert!(session.message(fact.evidence[0]).has_tag(Tag::TypedUser));
                assert!(topic.split([' ', '/']).all(|word| statement.contains(word)));
                assert!(!fact.question.contains(statement.as_str()));
                match form {
                    RuleForm::Open => {}
                    RuleForm::Choice { foil } => {
                        assert_ne!(foil, statement);
                        assert!(occurrences(foil).is_empty(), "{id}: {foil}");
                    }
                    RuleForm::Call { task, forbidden, allowed } => {
                        let allowed = allowed.as_ref().expect("a free object");
                        assert!(statement.contains(forbidden) && task.contains(forbidden));
                        assert!(statement.contains(&allowed.target));
                        // The two differ in the object alone.
                        let other = task.replace(forbidden, &allowed.target);
                        assert_eq!(other, allowed.task);
                    }
                }
            }
            Fact::Error { attempt, code, place } => {
                assert_eq!(fact.evidence.len(), 1);
                let text = &texts[fact.evidence[0]];
                for said in [code, place] {
                    assert_eq!(occurrences(said), fact.evidence, "{id}: {said}");
                    assert!(!fact.question.contains(said.as_str()));
                    let mut lines = text.lines().filter(|line| line.contains(said.as_str()));
                    assert!(lines.next().is_some_and(|line| line.contains(attempt)));
                }
                assert!(fact.question.contains(attempt));
            }
            Fact::Binding { key, value, others } => {
                assert!(others.len() >= 3, "{id}");
                assert_eq!(fact.evidence.len(), 1);
                assert_eq!(occurrences(value), fact.evidence, "{id}: {value}");
                assert!(fact.question.contains(key) && !fact.question.contains(value));
                for other in others {
                    assert_eq!(occurrences(&other.value), fact.evidence, "{id}");
                    assert_ne!(other.value, *value);
                }
            }
            Fact::Order { sequence, events } => {
                assert!(events.len() >= 3, "{id}");
                let said: Vec<usize> = events.iter().map(|event| event.message).collect();
                assert_eq!(said, fact.evidence, "{id}");
                assert!(said.is_sorted_by(|a, b| a < b), "{id}: {said:?}");
                for Revision { value, message, .. } in events {
                    assert_eq!(occurrences(value), [*message], "{id}: {value}");
                    assert!(!fact.question.contains(value.as_str()));
                    let mut lines = texts[*message].lines();
                    let line = lines.find(|line| line.contains(value.as_str()));
                    assert!(line.is_some_and(|line| line.contains(sequence)), "{id}");
                }
            }
            Fact::LastRequest { requests } => {
                let said: Vec<usize> = requests.iter().map(|said| said.message).collect();
                assert_eq!(said, fact.evidence, "{id}");
                assert!(said.is_sorted_by(|a, b| a < b), "{id}");
                for Revision { value, message, .. } in requests {
                    assert_eq!(occurrences(value), [*message], "{id}: {value}");
                    assert!(session.message(*message).has_tag(Tag::TypedUser));
                    assert!(!fact.question.contains(value.as_str()));
                }
            }
            Fact::Decision { key, choice, reason, rejected } => {
                assert_eq!(fact.evidence.len(), 1);
                assert!(rejected.len() > 1 && !rejected.contains(choice));
                for said in rejected.iter().chain([choice, reason]) {
                    let mut places = occurrences(said);
                    places.dedup();
                    assert_eq!(places, fact.evidence, "{id}: {said}");
                    assert!(!fact.question.contains(said.as_str()));
                }
                let text = &texts[fact.evidence[0]];
                let mut lines = text.lines().filter(|line| line.contains(reason.as_str()));
                let line = lines.next().expect("a line with the reason");
                assert!(line.contains(choice.as_str()) && line.contains(key.as_str()));
            }
            Fact::Update { key, values } | Fact::Numeric { key, values, .. } => {
                let said: Vec<usize> = values.iter().map(|revision| revision.message).collect();
                assert_eq!(said, fact.evidence, "{id}");
                assert!(said.is_sorted_by(|a, b| a < b), "{id}");
                for Revision { value, message, .. } in values {
                    assert_eq!(occurrences(value), [*message], "{id}: {value}");
                    assert!(!fact.question.contains(value.as_str()));
                    let mut lines = texts[*message].lines();
                    let line = lines.find(|line| line.contains(value.as_str()));
                    let line = line.expect("a line with the value");
                    assert!(key.split(' ').all(|word| line.contains(word)), "{line}");
                    if let Fact::Numeric { unit, .. } = &fact.fact {
                        assert!(line.contains(unit.as_str()), "{line}");
                        assert!(value.len() >= 7, "{value}");
                    }
                }
            }
            Fact::RejectedPath { approach, reason } => {
                assert_eq!(occurrences(reason), fact.evidence, "{id}");
                assert!(!fact.question.contains(reason.as_str()));
                for at in &fact.evidence {
                    let mut lines = texts[*at].lines();
                    let line = lines.find(|line| line.contains(reason.as_str()));
                    assert!(line.is_some_and(|line| line.contains(approach.as_str())));
                }
            }
            Fact::Continuation { plan, items } => {
                let (written, done) = ticked(session, plan);
                assert_eq!(written, fact.evidence, "{id}");
                for item in items {
                    assert_eq!(occurrences(&item.item), fact.evidence, "{id}: {}", item.item);
                    assert_eq!(item.done, done.get(&item.item).copied(), "{id}");
                    assert!(!fact.question.contains(&item.item));
                }
                assert!(items.iter().any(|item| item.done.is_none()), "{id}");
            }
            Fact::OpenHandle { owner, handles } => {
                assert!(handles.len() >= 2, "{id}");
                let mut places = BTreeSet::new();
                for handle in handles {
                    let mut said = vec![handle.started];
                    said.extend(handle.ended);
                    assert!(said.is_sorted_by(|a, b| a < b), "{id}: {said:?}");
                    assert_eq!(occurrences(&handle.name), said, "{id}");
                    for at in said {
                        let mut lines = texts[at].lines();
                        let line = lines.find(|line| line.contains(&handle.name));
                        assert!(line.expect("a line").contains(owner), "{id}");
                        places.insert(at);
                    }
                }
                assert_eq!(places.into_iter().collect::<Vec<_>>(), fact.evidence);
            }
            Fact::Obsolete { withdrawn, withdrawal, standing, .. } => {
                assert_eq!(occurrences(&withdrawn.value), fact.evidence, "{id}");
                assert_eq!(occurrences(&standing.value), fact.evidence[..1], "{id}");
                assert_eq!(occurrences(withdrawal), fact.evidence[1..], "{id}");
                for at in &fact.evidence {
                    assert!(session.message(*at).has_tag(Tag::TypedUser));
                }
            }
            Fact::Indirect { key, value } => {
                assert_eq!(occurrences(value), fact.evidence, "{id}");
                assert!(!fact.question.contains(value) && !fact.question.contains(key));
            }
            Fact::TwoStep { steps } => {
                assert_eq!(fact.evidence.len(), 2, "{id}");
                let [first, second] = &steps[..] else {
                    panic!("{id}: {steps:?}");
                };
                assert_eq!(occurrences(&first.value), fact.evidence, "{id}");
                let at = occurrences(&second.value);
                assert!(at.len() == 1 && fact.evidence.contains(&at[0]), "{id}");
                assert!(!fact.question.contains(&first.value));
                assert!(!fact.question.contains(&second.value));
            }
            Fact::Act { arguments } => {
                assert_eq!(fact.evidence.len(), arguments.len(), "{id}");
                for KeyValue { key, value } in arguments {
                    let at = occurrences(value);
                    assert!(at.len() == 1 && fact.evidence.contains(&at[0]), "{id}");
                    assert!(fact.question.contains(key) && !fact.question.contains(value));
                }
            }
            Fact::Open { .. } | Fact::Unanswerable => panic!("only people ask such questions"),
            Fact::Decoy { key, value } => {
                assert!(occurrences(value).is_empty(), "{id}");
                assert!(fact.evidence.is_empty());
                // Only lines with its longest word are looked at.
                let mut words: Vec<&str> = key.split(' ').collect();
                words.sort_by_key(|word| std::cmp::Reverse(word.len()));
                for at in memmem::find_iter(all.as_bytes(), words[0]) {
                    let from = all[..at].rfind('\n').map_or(0, |at| at + 1);
                    let line = all[from..].lines().next().unwrap_or_default();
                    assert!(!words.iter().all(|word| line.contains(word)), "{id}: {line}");
                }
            }
            Fact::Artifact { verb, files, optional } => {
                assert!(optional.is_empty() || *verb == ArtifactVerb::Read, "{id}");
                for file in optional {
                    let mut uses = session.message(file.message).tool_uses();
                    let shows = uses.any(|(_, tool)| {
                        let command = argument(tool, "command");
                        command.is_some_and(|command| command.contains(&file.path))
                    });
                    assert!(shows, "{id}: {}", file.path);
                }
                let expected = touched(session, *verb);
                let found: BTreeMap<String, Listed> = files
                    .iter()
                    .map(|file| (file.path.clone(), (file.message, file.until)))
                    .collect();
                assert_eq!(found, expected, "{id}");
                let messages: BTreeSet<usize> = expected.into_values().map(|(at, _)| at).collect();
                assert_eq!(fact.evidence, messages.into_iter().collect::<Vec<_>>());
            }
        }
    }
}

pub(crate) fn argument(tool_use: &ToolUse, name: &str) -> Option<String> {
    tool_use.input.value().get(name).and_then(|value| value.as_str()).map(str::to_owned)
}

/// The messages that write a plan, and where each item is ticked off, from the tool uses alone.
pub(crate) fn ticked(session: &Session, plan: &str) -> (Vec<usize>, BTreeMap<String, usize>) {
    let (mut written, mut done) = (Vec::new(), BTreeMap::new());
    for (at, message) in session.messages().iter().enumerate() {
        for (_, tool_use) in message.tool_uses() {
            if argument(tool_use, "plan").as_deref() != Some(plan) {
                continue;
            }
            written.push(at);
            for task in tool_use.input.value()["todos"].as_array().unwrap() {
                if task["status"] == "done" {
                    let name = task["task"].as_str().unwrap().to_owned();
                    done.entry(name).or_insert(at);
                }
            }
        }
    }
    (written, done)
}

/// From which message on a file is in a list, and until which one, if it is put into another.
pub(crate) type Listed = (usize, Option<usize>);

/// The files of one verb, from the tool uses alone.
pub(crate) fn touched(session: &Session, verb: ArtifactVerb) -> BTreeMap<String, Listed> {
    let mut by_tool: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for (at, message) in session.messages().iter().enumerate() {
        for (_, tool_use) in message.tool_uses() {
            if let Some(path) = argument(tool_use, "file_path") {
                by_tool.entry(&tool_use.name).or_default().entry(path).or_insert(at);
            }
        }
    }
    let mut of = |tool| by_tool.remove(tool).unwrap_or_default();
    let (read, mut edited, written) = (of("Read"), of("Edit"), of("Write"));
    // What was created stays created.
    edited.retain(|path, _| !written.contains_key(path));
    let stays = |files: BTreeMap<String, usize>| {
        let files = files.into_iter();
        files.map(|(path, at)| (path, (at, None))).collect()
    };
    match verb {
        ArtifactVerb::Created => stays(written),
        ArtifactVerb::Modified => stays(edited),
        // What is read first and changed later was only read until then.
        ArtifactVerb::Read => read
            .into_iter()
            .map(|(path, at)| {
                let changed = edited.get(&path).or_else(|| written.get(&path));
                (path.clone(), (at, changed.copied()))
            })
            .filter(|(_, (at, changed))| changed.is_none_or(|changed| changed > *at))
            .collect(),
        ArtifactVerb::Deleted => BTreeMap::new(),
    }
}
