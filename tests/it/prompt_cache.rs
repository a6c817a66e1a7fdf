//! The incremental prompt cache says what one says that remembers every prompt, whatever happens to
//! a context.

use std::sync::Arc;

use proctor::context::{CacheEffect, Context, Entry};
use proctor::metric::cost::{BillBasis, SchemeCost};
use proctor::model::offline::Offline;
use proctor::model::price::{CacheScheme, Client, Placement, Prices, Rates, Reuse};
use proctor::model::scripted::Scripted;
use proctor::record::{CellRecord, ObservedCache, PriceEntry};
use proctor::replay::prompt_cache::{
    BlockList, CacheEvent, EditedEntries, IdealCache, PromptCache, PromptLine, PromptPiece, SentAt,
    Split,
};
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::synthetic::{Length, Recipe, generate};
use proctor::session::{ContentBlock, Role, Session, import};
use proctor::settings::{Place, SettingTable};
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CountedTexts, counter};
use proctor::units::{Tokens, Usage};
use proctor::window::Window;
use proptest::prelude::*;

use crate::contexts::{self, Happening};
use crate::shared;
use crate::support::{answers, asks, cell, models, said, session, typed};

fn scheme(reuse: Reuse) -> CacheScheme {
    CacheScheme {
        name: "tried".to_owned(),
        reuse,
        rates: Rates { write: Some(1_250), read: 100, output: 5_000, long_prompts: None },
        breakpoints: 4,
        look_back: Some(4),
        ttl_seconds: Some(300),
        ..CacheScheme::none()
    }
}

/// A prompt, block by block, and where its newest user messages end.
struct Prompt {
    blocks: Vec<(String, Tokens)>,
    /// The position of each block in the look-back.
    positions: Vec<usize>,
    ends: Vec<usize>,
}

impl Prompt {
    fn of(context: &Context) -> Self {
        let counts = contexts::counts();
        let mut prompt = Self { blocks: Vec::new(), positions: Vec::new(), ends: Vec::new() };
        let mut last = None;
        for entry in context.entries() {
            let message = &entry.message;
            let kinds = message.content().iter().map(std::mem::discriminant);
            for ((kind, block), of) in kinds.zip(message.blocks()).zip(message.content()) {
                let run = match of {
                    ContentBlock::ToolUse(_) => Some(1),
                    ContentBlock::ToolResult(_) => Some(2),
                    _ => None,
                };
                let before = prompt.positions.last().copied().unwrap_or(0);
                let continues = run.is_some() && run == last;
                prompt.positions.push(before + usize::from(!continues));
                last = run;

                let key = format!("{kind:?} {:?} {}", message.role(), block.text);
                prompt.blocks.push((key, counts.block(&block).tokens));
            }
            if message.role() == Role::User {
                prompt.ends.push(prompt.blocks.len());
            }
        }
        prompt.ends = prompt.ends.into_iter().rev().take(2).collect();
        prompt
    }

    fn until(&self, blocks: usize) -> Tokens {
        self.blocks[..blocks].iter().map(|(_, tokens)| *tokens).sum()
    }

    fn begins_like(&self, other: &[(String, Tokens)]) -> bool {
        self.blocks.starts_with(other)
    }
}

/// A cache that remembers every prompt.
struct Memory {
    reuse: Reuse,
    kept: Vec<(Vec<(String, Tokens)>, SentAt)>,
}

impl Memory {
    fn send(&mut self, prompt: &Prompt, now: SentAt) -> Split {
        let live: Vec<&[(String, Tokens)]> = self
            .kept
            .iter()
            .filter(|(_, used)| now - used <= 300_000)
            .map(|(prefix, _)| &prefix[..])
            .collect();
        let (found, last) = match self.reuse {
            Reuse::Nothing => (0, 0),
            Reuse::LongestPrefix => {
                let common = |other: &&[(String, Tokens)]| {
                    let pairs = prompt.blocks.iter().zip(*other);
                    pairs.take_while(|(own, other)| own == other).count()
                };
                (live.iter().map(common).max().unwrap_or(0), prompt.blocks.len())
            }
            Reuse::Breakpoints => {
                let position = |length: usize| {
                    let last = length.checked_sub(1);
                    last.map_or(0, |last| prompt.positions[last])
                };
                let is_near = |length: usize| {
                    let mut ends = prompt.ends.iter();
                    ends.any(|end| length <= *end && position(*end) - position(length) < 4)
                };
                let found = live
                    .iter()
                    .filter(|prefix| is_near(prefix.len()) && prompt.begins_like(prefix))
                    .map(|prefix| prefix.len());
                let last = prompt.ends.first().copied().unwrap_or(0);
                (found.max().unwrap_or(0), last)
            }
        };
        let read = prompt.until(found);
        let ends = match self.reuse {
            Reuse::LongestPrefix => vec![prompt.blocks.len()],
            Reuse::Nothing | Reuse::Breakpoints => {
                let mut ends = prompt.ends.clone();
                ends.push(found);
                ends
            }
        };
        let prefixes = ends.iter().map(|end| (prompt.blocks[..*end].to_vec(), now));
        self.kept.extend(prefixes.collect::<Vec<_>>());
        Split { read, written: prompt.until(last) - read }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn following_a_prompt_is_as_good_as_remembering_all_of_them(
        happenings in contexts::happenings(),
        reuse in prop::sample::select(&[Reuse::Breakpoints, Reuse::LongestPrefix][..]),
    ) {
        let counts = contexts::counts();
        let mut context = Context::default();
        let mut line = PromptLine::new(&[]);
        let mut cache = PromptCache::new(Arc::new(scheme(reuse)), Client::RECOMMENDED);
        let mut memory = Memory { reuse, kept: Vec::new() };
        let mut now = 0;
        for (at, happening) in happenings.iter().enumerate() {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::from(message.clone()), &counts);
                    line.append(&BlockList::of(&entry, &counts));
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    let edits = contexts::plan(&context, changes, &counts);
                    let applied = contexts::apply(&mut context, edits).unwrap();
                    let edits = applied.change.edits.iter().map(|edit| EditedEntries {
                        entries: edit.entries.clone(),
                        with: edit.with.iter().map(|entry| BlockList::of(entry, &counts)).collect(),
                        cache: CacheEffect::Breaks,
                    });
                    line.patch(&edits.collect::<Vec<_>>());
                }
                Happening::Look => {
                    // Now and then more time goes by than a prefix lives, and often half of it.
                    now += match at % 5 {
                        0 => 301_000,
                        2 | 4 => 160_000,
                        _ => 1_000,
                    };
                    let prompt = Prompt::of(&context);
                    prop_assert_eq!(line.until(line.len()), prompt.until(prompt.blocks.len()));
                    let split = cache.send(&line, None, now).split;
                    line.sent(now);
                    prop_assert_eq!(split, memory.send(&prompt, now));
                }
            }
        }
    }
}

/// What blocks say, with their sizes.
type Blocks = Vec<(String, Tokens)>;

/// The ideal cache, block by block and prompt by prompt: every block of every prompt is looked up.
#[derive(Default)]
struct IdealMemory {
    /// By prompt, when it was sent, and its blocks, each with the node that it is.
    sent: Vec<(SentAt, Blocks, Vec<usize>)>,
    /// By node, how often it is used, and the prompt that used it first.
    nodes: Vec<(u64, usize)>,
    /// By prompt, how many of its blocks were known.
    known: Vec<usize>,
    /// By request beside the agent's, the prompt at that time and the nodes that it reads.
    asked: Vec<(Blocks, Vec<usize>)>,
}

impl IdealMemory {
    /// The nodes of the longest known prefix.
    fn known(&self, prompt: &Prompt, limit: usize, now: SentAt) -> Vec<usize> {
        let live = self.sent.iter().filter(|(used, ..)| now - used <= 300_000);
        let known = live.map(|(_, blocks, nodes)| {
            let pairs = prompt.blocks[..limit].iter().zip(blocks);
            let shared = pairs.take_while(|(own, other)| own == other).count();
            nodes[..shared].to_vec()
        });
        // Of prompts that were sent so, the last one's nodes are those that are alive.
        known.max_by_key(Vec::len).unwrap_or_default()
    }

    fn send(&mut self, prompt: &Prompt, now: SentAt) {
        let mut nodes = self.known(prompt, prompt.blocks.len(), now);
        self.known.push(nodes.len());
        while nodes.len() < prompt.blocks.len() {
            nodes.push(self.nodes.len());
            self.nodes.push((0, self.sent.len()));
        }
        for node in &nodes {
            self.nodes[*node].0 += 1;
        }
        self.sent.push((now, prompt.blocks.clone(), nodes));
    }

    fn ask(&mut self, prompt: &Prompt, shared: usize, now: SentAt) {
        let nodes = self.known(prompt, shared, now);
        for node in &nodes {
            self.nodes[*node].0 += 1;
        }
        self.asked.push((prompt.blocks.clone(), nodes));
    }

    /// How each prompt splits, and what each request reads.
    fn finish(&self, write: u64) -> (Vec<Split>, Vec<Tokens>) {
        let is_written = |node: usize| {
            let uses = self.nodes[node].0;
            write + (uses - 1) * 100 < uses * 1_000
        };
        // Of which prompt a node is, its size is the same in each.
        let tokens = |blocks: &[(String, Tokens)]| blocks.iter().map(|(_, tokens)| *tokens).sum();
        let read = |nodes: &[usize], blocks: &[(String, Tokens)]| -> Tokens {
            let written = nodes.iter().rposition(|node| is_written(*node));
            tokens(&blocks[..written.map_or(0, |at| at + 1)])
        };
        let splits = self.sent.iter().zip(&self.known).enumerate();
        let splits = splits.map(|(number, ((_, blocks, nodes), known))| {
            let read = read(&nodes[..*known], blocks);
            let own = |node: &usize| self.nodes[*node].1 == number && is_written(*node);
            let until = nodes.iter().rposition(own).map_or(0, |at| at + 1);
            let written = tokens(&blocks[..until]) - read;
            Split { read, written }
        });
        let asked = self.asked.iter();
        let asked = asked.map(|(blocks, nodes)| read(nodes, blocks));
        (splits.collect(), asked.collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_ideal_cache_of_nodes_is_as_good_as_one_of_blocks(
        happenings in contexts::happenings(),
        shares in prop::collection::vec(0..30_usize, 40),
        write in prop::sample::select(&[1_000, 1_250, 2_000][..]),
    ) {
        let counts = contexts::counts();
        let mut scheme = scheme(Reuse::Breakpoints);
        scheme.rates.write = Some(write);
        let mut line = PromptLine::new(&[]);
        let mut context = Context::default();
        let mut ideal = IdealCache::new(Arc::new(scheme));
        let mut memory = IdealMemory::default();
        let mut now = 0;
        for (at, happening) in happenings.iter().enumerate() {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::from(message.clone()), &counts);
                    line.append(&BlockList::of(&entry, &counts));
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    let edits = contexts::plan(&context, changes, &counts);
                    let applied = contexts::apply(&mut context, edits).unwrap();
                    let edits = applied.change.edits.iter().map(|edit| EditedEntries {
                        entries: edit.entries.clone(),
                        with: edit.with.iter().map(|entry| BlockList::of(entry, &counts)).collect(),
                        cache: CacheEffect::Breaks,
                    });
                    let edits: Vec<EditedEntries> = edits.collect();
                    ideal.edits(&line, &edits);
                    line.patch(&edits);
                    let prompt = Prompt::of(&context);
                    for blocks in 0..=prompt.blocks.len() {
                        prop_assert_eq!(line.until(blocks), prompt.until(blocks));
                        let last = blocks.checked_sub(1).map_or(0, |last| prompt.positions[last]);
                        prop_assert_eq!(line.position(blocks), last);
                    }
                    let shared = shares[at].min(line.len());
                    ideal.side_request(&line, shared, memory.asked.len(), now);
                    memory.ask(&prompt, shared, now);
                }
                Happening::Look => {
                    now += if at % 5 == 0 { 301_000 } else { 100_000 };
                    ideal.send(&line, now);
                    line.sent(now);
                    memory.send(&Prompt::of(&context), now);
                }
            }
        }
        let (splits, reads) = ideal.finish();
        let (expected, asked) = memory.finish(write.into());
        prop_assert_eq!(splits, expected);
        let reads: Vec<Tokens> = reads.into_iter().map(|(_, read)| read).collect();
        prop_assert_eq!(reads, asked);
    }
}

/// The cost of a prompt that splits so.
fn cost_of(scheme: &CacheScheme, prompt: Tokens, split: Split) -> u64 {
    let usage = Usage {
        input_uncached: prompt - split.read - split.written,
        cache_write_5m: split.written,
        cache_read: split.read,
        ..Usage::default()
    };
    scheme.rates.cost(&usage)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever happens to a context and to the provider's cache, and wherever the breakpoints stand.
    #[test]
    fn no_breakpoints_cost_less_than_the_ideal_ones(
        happenings in contexts::happenings(),
        events in prop::collection::vec(prop::option::weighted(0.3, 0..60_u64), 40),
        edges in prop::collection::vec(0..30_usize, 40),
        write in prop::sample::select(&[1_000, 1_250, 2_000][..]),
        minimum in prop::sample::select(&[0, 5, 20][..]),
        clients in prop::sample::select(&["claude-code", "pi", "opencode", "openhands"][..]),
    ) {
        let counts = contexts::counts();
        let mut scheme = scheme(Reuse::Breakpoints);
        scheme.rates.write = Some(write);
        scheme.minimum = Tokens(minimum);
        let scheme = Arc::new(scheme);
        let client = Client::of(clients);
        let head = [PromptPiece::new("tools", Tokens(3)), PromptPiece::new("system", Tokens(4))];
        let mut line = PromptLine::new(&head);
        let mut context = Context::default();
        let mut usual = PromptCache::new(scheme.clone(), client);
        let mut edge = PromptCache::new(scheme.clone(), client);
        let mut ideal = IdealCache::new(scheme.clone());
        let (mut prompts, mut costs) = (Vec::new(), [0_u64; 2]);
        let (mut asked, mut limits, mut now) = (Vec::new(), Vec::new(), 0);
        for (at, happening) in happenings.iter().enumerate() {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::new((**message).clone()), &counts);
                    line.append(&BlockList::of(&entry, &counts));
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    // Before a patch a summary may be asked for, with some of the agent's prompt.
                    let mut request = PromptLine::new(&head);
                    for entry in context.entries().iter().take(edges[at]) {
                        request.append(&BlockList::of(entry, &counts));
                    }
                    let shared = line.shared_with(&request);
                    let reads = [&usual, &edge].map(|it| it.side_request(&line, &request, shared, now));
                    ideal.side_request(&line, shared, asked.len(), now);
                    asked.push(reads);
                    let edits = contexts::plan(&context, changes, &counts);
                    let applied = contexts::apply(&mut context, edits).unwrap();
                    let edits = applied.change.edits.iter().map(|edit| EditedEntries {
                        entries: edit.entries.clone(),
                        with: edit.with.iter().map(|entry| BlockList::of(entry, &counts)).collect(),
                        cache: CacheEffect::Breaks,
                    });
                    line.patch(&edits.collect::<Vec<_>>());
                }
                Happening::Look => {
                    now += if at % 5 == 0 { 301_000 } else { 100_000 };
                    let prompt = line.until(line.len());
                    let front = line.first_block(edges[at]);
                    let is_expired = prompts.is_empty() || at % 5 == 0;
                    let event = if is_expired { CacheEvent::Warm } else { CacheEvent::Missed };
                    let most = events[at].map(Tokens);
                    line.meet(most.map(event));
                    let splits = [usual.send(&line, None, now), edge.send(&line, Some(front), now)];
                    ideal.send(&line, now);
                    line.sent(now);
                    for (cost, served) in costs.iter_mut().zip(splits) {
                        prop_assert!(served.split.read <= most.unwrap_or(Tokens(u64::MAX)));
                        *cost += cost_of(&scheme, prompt, served.split);
                    }
                    prompts.push(prompt);
                    limits.push(most);
                }
            }
        }
        let (splits, reads) = ideal.finish();
        for (split, most) in splits.iter().zip(limits) {
            prop_assert!(split.read <= most.unwrap_or(Tokens(u64::MAX)));
        }
        let own = prompts.iter().zip(splits);
        let mut least: u64 = own.map(|(prompt, split)| cost_of(&scheme, *prompt, split)).sum();
        // What a request beside the agent's does not read it pays in full.
        let unread = |all: u64, read: Tokens| (all - read.0) * 1_000 + read.0 * 100;
        for ((number, read), others) in reads.into_iter().zip(&asked) {
            let all = 1_000_000;
            least += unread(all, read);
            for (cost, other) in costs.iter_mut().zip(others) {
                *cost += unread(all, *other);
            }
            prop_assert!(number < asked.len());
        }
        prop_assert!(least <= costs[0], "{least} against {} as usual", costs[0]);
        prop_assert!(least <= costs[1], "{least} against {} at an edge", costs[1]);
    }
}

/// What the reference of a session, and one strategy, leave in the records.
fn replayed(session: Session, strategy: Option<&str>) -> CellRecord {
    let schemes = Prices::built_in().unwrap().schemes("anthropic", session.model());
    replayed_under(schemes, session, strategy)
}

/// The same, as billed by Anthropic with the cache of five minutes.
fn replayed_as_billed(session: Session, strategy: Option<&str>) -> CellRecord {
    let mut schemes = Prices::built_in().unwrap().schemes("anthropic", session.model());
    schemes.sort_by_key(|scheme| scheme.name != "anthropic-5m");
    replayed_under(schemes, session, strategy)
}

fn replayed_under(
    schemes: Vec<CacheScheme>,
    session: Session,
    strategy: Option<&str>,
) -> CellRecord {
    let counts = Arc::new(CountedTexts::new(counter("o200k").unwrap()));
    let prices = Prices::built_in().unwrap();
    let mut prepared = PreparedSession::new(Arc::new(session), counts.clone(), Vec::new())
        .unwrap()
        .with_cache(schemes, 30);
    let own = PriceEntry {
        model: "gpt-5-codex".to_owned(),
        per_token: prices.of("gpt-5-codex").unwrap().1.per_token,
        ..PriceEntry::default()
    };
    prepared.cache().unwrap().prices = Some((Arc::new(prices), own));
    let offline = Models {
        summariser: Arc::new(Offline::new(counts)),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let arranged = match strategy {
        None => Replayed::Full,
        Some(name) => {
            let trigger = Trigger::always();
            let spec = StrategySpec::parse(name, &trigger, &Place::BuiltIn).unwrap();
            Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(40_000)))
        }
    };
    let name = cell(strategy.unwrap_or("full"));
    replay(&prepared, name, arranged, &offline, &NoClock).record
}

fn work() -> Session {
    let recipe = Recipe { length: Length::Rounds(40), seed: 2, ..Recipe::default() };
    let counts = contexts::counts();
    generate(&recipe, &counts).unwrap().session
}

#[test]
fn a_summary_asked_for_at_the_end_of_the_agents_prompt_reads_its_cache() {
    let check = |mode: &str, reads: bool| {
        let name = format!("compact-directly[summarize.mode={mode}]");
        let record = replayed(work(), Some(&name));
        assert!(!record.model_calls.is_empty());
        for cache in &record.prompt_cache {
            let read = cache.strategy_read.iter().any(|read| *read > Tokens::ZERO);
            assert_eq!(read, reads && cache.scheme != "none", "{mode} {}", cache.scheme);
        }
    };
    check("append", true);
    check("append_without_tools", false);
    check("fresh", false);
}

#[test]
fn a_summary_that_another_model_writes_reads_no_cache_and_has_its_price() {
    let check = |model: &str, elsewhere: bool, input: Option<u64>| {
        let name = format!("compact-directly[summarize.mode=fresh,summarize.model={model}]");
        let record = replayed(work(), Some(&name));
        let calls = record.model_calls.len();
        assert!(calls > 0);
        for cache in &record.prompt_cache {
            let expected = if elsewhere { calls } else { 0 };
            assert_eq!(cache.other_models.len(), expected, "{model}");
            let mut prices = cache.other_models.values();
            assert!(prices.all(|price| price.map(|price| price.input) == input), "{model}");
            assert_eq!(cache.strategy_read, [], "{model}");
        }
    };
    check("same", false, None);
    check("fast", true, Some(40));
    check("gpt-5.4", true, Some(2_000));
    check("of-nobody", true, None);
}

/// A mask that moves at every call is read again only up to a breakpoint in front of it.
#[test]
fn a_breakpoint_at_the_mask_saves_what_the_usual_ones_waste() {
    let costs = |name: &str| -> Vec<(Placement, u64)> {
        let (full, own) =
            (replayed_as_billed(work(), None), replayed_as_billed(work(), Some(name)));
        let costs = SchemeCost::of(&own, &full);
        assert_eq!(costs[0].scheme, "anthropic-5m");
        let placed = Placement::ALL.into_iter().filter_map(|placement| {
            let bill = BillBasis::Own(placement);
            let cost = SchemeCost::under_bill(&costs, &bill)?;
            Some((cost.placement, 100 * cost.cost / cost.reference_cost))
        });
        placed.collect()
    };
    let [(_, usual), (Placement::Edge, edge), (Placement::Ideal, ideal)] =
        costs("observation-masking")[..]
    else {
        panic!("three placements");
    };
    assert!(usual > 130 && edge < usual - 20 && ideal <= edge, "{usual} {edge} {ideal}");
    // A strategy that names no edge has the usual breakpoints there.
    let placements = costs("codex").into_iter().map(|(placement, _)| placement);
    let placements: Vec<Placement> = placements.collect();
    let usual = Placement::Usual;
    assert_eq!(placements, [usual, usual, Placement::Ideal]);
}

#[test]
fn every_break_of_a_cache_names_what_broke_it() {
    let record = replayed(work(), Some("observation-masking"));
    let causes = |scheme: &str| -> Vec<&str> {
        let mut caches = record.prompt_cache.iter();
        let cache = caches.find(|cache| cache.scheme == scheme).unwrap();
        cache.breaks.keys().map(String::as_str).collect()
    };
    assert_eq!(causes("none"), [""; 0]);
    // The session's long pauses outlive five minutes, and not an hour.
    assert_eq!(causes("anthropic-5m"), ["clear_results", "expired"]);
    assert_eq!(causes("anthropic-1h"), ["clear_results"]);
    let full = replayed(work(), None);
    for cache in &full.prompt_cache {
        assert!(cache.breaks.keys().all(|cause| cause == "expired"), "{cache:?}");
    }
}

#[test]
fn of_two_stages_the_one_that_cut_deeper_broke_the_cache() {
    let mut messages = vec![typed("go")];
    for (at, tool) in ["Read", "Bash", "Read", "Bash", "Read", "Bash"].into_iter().enumerate() {
        let id = format!("t{at}");
        messages.push(asks(&id, tool, "a"));
        messages.push(answers(&id, &format!("{at:04} ").repeat(1_600)));
    }
    messages.push(said("done"));
    let session = Arc::new(session(messages));
    let stage = |name: &str, tool: &str| {
        format!(
            "[[stage]]\nkind = 'clear_results'\nname = '{name}'\ntools = ['{tool}']\n\
             keep_last = 1\nwhen = {{ results_over = 5 }}\n"
        )
    };
    // Both clear at the last call, and the first result of all is one of `Read`.
    let (deep, shallow) = (stage("deep", "Read"), stage("shallow", "Bash"));
    for stages in [format!("{deep}{shallow}"), format!("{shallow}{deep}")] {
        let table = SettingTable::parse("own", &stages).unwrap();
        let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
        let pipeline = Box::new(spec.build().unwrap());
        let schemes = Prices::built_in().unwrap().schemes("anthropic", None);
        let prepared =
            PreparedSession::new(session.clone(), contexts::counts(), Vec::new()).unwrap();
        let prepared = prepared.with_cache(schemes, 30);
        let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(900_000)));
        let models = models(Scripted::new());
        let record = replay(&prepared, cell("own"), replayed, &models, &NoClock).record;
        assert_eq!(record.compactions.len(), 2, "{stages}");
        for cache in &record.prompt_cache {
            let causes: Vec<&str> = cache.breaks.keys().map(String::as_str).collect();
            let expected = if cache.scheme == "none" { vec![] } else { vec!["deep"] };
            assert_eq!(causes, expected, "{} {stages}", cache.scheme);
        }
    }
}

/// The share that the simulated reads make of the prompts that were billed. The part of a prompt that the recording does
/// not hold comes first: once cached, it is read at every call at which anything is.
fn read_share(observed: &ObservedCache, scheme: &str) -> f64 {
    let read = observed.simulated[scheme].cache_read;
    let later = observed.calls.saturating_sub(1) as u64;
    let heads = if read > Tokens::ZERO { later } else { 0 };
    let head = observed.unrecorded.times(heads);
    let whole = observed.counted + observed.unrecorded.times(observed.calls as u64);
    (read + head).share_of(whole).unwrap()
}

#[test]
fn shared_recordings_say_they_read_what_the_simulator_reads() {
    for (folder, scheme) in [("claude-code", "anthropic-5m"), ("codex", "auto-prefix")] {
        let Some(folder) = shared::folder(&format!("sessions/{folder}")) else {
            return;
        };
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let sessions = files.iter().flat_map(|file| import::load(file).unwrap());
        let mut errors = Vec::new();
        for session in sessions {
            let record = replayed(session, None);
            let Some(observed) = record.observed_cache else {
                continue;
            };
            let billed = observed.billed.cache_read.share_of(observed.billed.prompt()).unwrap();
            let simulated = read_share(&observed, scheme);
            println!(
                "{:<50} {:>4} calls, billed {:>5.1} %, simulated {:>5.1} %",
                record.session,
                observed.calls,
                100.0 * billed,
                100.0 * simulated
            );
            errors.push((simulated - billed).abs());
        }
        errors.sort_unstable_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        println!("median error under {scheme}: {:.1} points", 100.0 * median);
        assert!(errors.len() >= 8 && median < 0.02, "{errors:?}");
    }
}
