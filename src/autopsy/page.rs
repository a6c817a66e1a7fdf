//! Autopsies as a report: one session, or a folder with the worst first; and its screen of 40 lines.

use std::slice;

use super::{Autopsy, Breaks, Compaction, Kind, Outcome, Thrown, Totals, is_gone};
use crate::record::Fate;
use crate::report::display::{many, tokens};
use crate::report::layout::{blanks, cut_middle, width, wrap};
use crate::report::terminal::Terminal;
use crate::report::{Audience, Banner, Cell, Report, Role, Row, Section, columns, escape};
use crate::units::Usd;

/// Lines of a screen at most.
const LINES: usize = 40;

/// Rows of each section that a screen shows where there is room, and where there is less.
const ROOMS: [usize; 6] = [8, 6, 5, 4, 3, 2];

/// Sub-agents that are named.
const MOST_NAMED: usize = 3;

/// How long a name or a rule may be in a table.
const LONGEST: usize = 36;

fn section(
    id: &'static str,
    title: &str,
    heads: &'static str,
    rows: impl IntoIterator<Item = Row>,
) -> Section {
    let mut section = Section::new(id, rows);
    title.clone_into(&mut section.title);
    section.table.columns = columns(heads);
    section
}

fn row(name: impl Into<String>, cells: Vec<Cell>) -> Row {
    Row {
        name: name.into(),
        role: Role::Other,
        marks: Vec::new(),
        ranked: false,
        cells,
    }
}

/// A name or a rule on one line; of a path the end says more than the middle.
fn name(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut_middle(&escape::plain(&words.join(" ")), LONGEST)
}

fn at(call: Option<usize>) -> Cell {
    call.map_or(Cell::NOT_APPLICABLE, |call| {
        Cell::text(format!("call {call}"))
    })
}

/// Dollars, or tokens where no price is known.
fn money(usd: Option<Usd>, spent: u64) -> Cell {
    usd.map_or_else(
        || Cell::text(format!("{} tokens", tokens(spent))),
        |usd| Cell::dollars(Some(usd)),
    )
}

/// The report of these sessions, the worst first, and of files that could not be looked at.
pub fn report(autopsies: &[Autopsy], failures: &[String]) -> Report {
    let sum = Totals::of(autopsies.iter().flat_map(Autopsy::all));
    let mut report = match autopsies {
        [only] => of_session(only, &sum),
        many => of_folder(many, &sum),
    };
    let failures = failures
        .iter()
        .map(|why| Banner::warning(format!("not looked at: {why}")));
    report.banners.extend(failures);
    report
        .sections
        .retain(|section| !section.table.rows.is_empty());
    report
}

fn of_session(only: &Autopsy, sum: &Totals) -> Report {
    let compactions = only.compactions.iter().enumerate();
    let compactions = compactions.map(|(number, own)| compaction_row(number, own, only));
    let mut sections = vec![
        section(
            "autopsy_compactions",
            "Compactions",
            "compaction|at|size:from → to|cost|lost:lost, and needed later",
            compactions,
        ),
        thrown("All that they threw away", sum, &only.compactions),
        section(
            "autopsy_needed",
            "Thrown away and needed later",
            "needed:needed later|kind @2|lost:lost at @1|call:needed at|how:how it came back",
            only.compactions.iter().flat_map(needed_rows),
        ),
        rules(only),
        breaks(sum, only.calls),
    ];
    if only.compactions.len() > 1 {
        let each = only.compactions.iter().enumerate().map(|(number, own)| {
            let title = format!(
                "Thrown away by compaction {}, before call {}",
                number + 1,
                own.call
            );
            thrown(
                &title,
                &Totals::of_compactions(slice::from_ref(own)),
                slice::from_ref(own),
            )
        });
        let each: Vec<Section> = each.collect();
        sections.extend(each.into_iter().map(in_files));
    }
    Report {
        title: heading(only, sum),
        lines: std::iter::once(sum.sentence()).chain(lines(only)).collect(),
        sections,
        next: next(only),
        ..Report::default()
    }
}

fn in_files(mut section: Section) -> Section {
    section.audience = Audience::Files;
    section
}

fn heading(only: &Autopsy, sum: &Totals) -> String {
    let version = only
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!(" {version}"));
    let calls = many(only.calls, "call", "calls");
    let compactions = many(only.compactions.len(), "compaction", "compactions");
    let bill = match only.usd {
        Some(usd) if only.billed_calls == only.calls => format!("{usd} as billed"),
        Some(usd) => format!(
            "{usd}, {} of them as billed",
            many(only.billed_calls, "call", "calls")
        ),
        None => format!("{} tokens, no prices known", tokens(only.usage.total().0)),
    };
    let agents = match only.sub_agents.len() {
        0 => String::new(),
        count => format!(
            ", {} with {}",
            sum.usd,
            many(count, "sub-agent", "sub-agents")
        ),
    };
    let (session, product) = (&only.session, &only.product);
    format!("session {session} ({product}{version}, {calls}, {compactions}): {bill}{agents}")
}

/// How full it was, and all that stands in no table.
fn lines(only: &Autopsy) -> Vec<String> {
    let share = |size: u64| format!("{:.0} %", 100.0 * size as f64 / only.window.0.max(1) as f64);
    let (call, largest) = only.fullest;
    let line = only.line.map_or_else(String::new, |line| {
        format!(", and it compacts by itself at {}", tokens(line.0))
    });
    let mut lines = vec![format!(
        "The largest prompt has {} at call {call}, {} of a window of {}{line}.",
        tokens(largest.0),
        share(largest.0),
        tokens(only.window.0)
    )];
    let sizes = only.compactions.iter().map(|own| own.before.0);
    let fired: Vec<String> = match (sizes.clone().min(), sizes.clone().max()) {
        (Some(least), Some(most)) if sizes.len() > 3 => vec![share(least), share(most)],
        _ => sizes.map(share).collect(),
    };
    if !fired.is_empty() {
        lines[0].pop();
        let between = if only.compactions.len() > 3 {
            " to "
        } else {
            ", "
        };
        lines[0] += &format!("; it fired at {} of the window.", fired.join(between));
    }
    if only.compactions.iter().any(|own| own.is_opaque) {
        let why = "A compaction cannot be read in this recording: its size and what was needed later are known, what it lost is not.";
        lines.push(why.to_owned());
    }
    if only.begins_compacted {
        lines.push(
            "The recording begins with a summary: what came before it is not known.".to_owned(),
        );
    }
    if only.compactions_at_end > 0 {
        let count = many(
            only.compactions_at_end,
            "more compaction has",
            "more compactions have",
        );
        lines.push(format!(
            "{count} no call behind: nothing shows what was needed."
        ));
    }
    if only.repeated_anyway > 0 {
        let count = many(only.repeated_anyway, "result was", "results were");
        lines.push(format!(
            "{count} fetched again while the first still stood in the prompt."
        ));
    }
    let has_rules = only.rules.iter().any(|rule| rule.gone_at().is_some());
    if has_rules && only.hides_system_prompt {
        let why =
            "The system prompt is not recorded: the product may have kept files of rules there.";
        lines.push(why.to_owned());
    }
    let agents: Vec<String> = only
        .sub_agents
        .iter()
        .map(|own| {
            let calls = many(own.calls, "call", "calls");
            format!(
                "{} ({calls}, {})",
                own.session,
                many(own.compactions.len(), "compaction", "compactions")
            )
        })
        .collect();
    if !agents.is_empty() {
        let more = agents.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let named = &agents[..agents.len().min(MOST_NAMED)];
        lines.push(format!("Sub-agents: {}{more}.", named.join(", ")));
    }
    lines
}

fn compaction_row(number: usize, own: &Compaction, only: &Autopsy) -> Row {
    let trigger = match own.trigger.as_deref() {
        Some("auto") => " automatic".to_owned(),
        Some(other) => format!(" {}", escape::short(other, 12)),
        None => String::new(),
    };
    let request = own.request.unwrap_or_default();
    row(
        format!("{}{trigger}", number + 1),
        vec![
            at(Some(own.call)),
            Cell::text(format!(
                "{} → {}",
                tokens(own.before.0),
                tokens(own.after.0)
            )),
            money(own.usd, (request.total() + own.rewritten).0),
            Cell::text(lost(own, only)),
        ],
    )
}

/// What a compaction lost that was needed later, in words.
fn lost(own: &Compaction, only: &Autopsy) -> String {
    let [files, calls] = own.again();
    let mut parts = vec![
        (files, "file read again", "files read again"),
        (calls, "call made again", "calls made again"),
    ];
    // A command that is run again needs no memory: the table has it.
    let rows = own
        .thrown
        .iter()
        .filter(|(kind, _)| **kind != Kind::Command);
    let sum = |count: fn(&Thrown) -> usize| rows.clone().map(|(_, row)| count(row)).sum::<usize>();
    parts.extend([
        (sum(|row| row.told), "told again", "told again"),
        (sum(|row| row.without), "done without", "done without"),
        (
            sum(|row| row.fetched),
            "name brought back by tools",
            "names brought back by tools",
        ),
    ]);
    let parts = parts.into_iter().filter(|(count, _, _)| *count > 0);
    let mut parts: Vec<String> = parts
        .map(|(count, one, more)| many(count, one, more))
        .collect();
    let gone = only
        .rules
        .iter()
        .filter(|rule| rule.gone_at().is_some_and(|(at, _)| at == own.call));
    for rule in gone.clone().filter(|rule| rule.broken_at.is_some()) {
        let call = rule.broken_at.unwrap_or_default();
        parts.push(format!(
            "the rule \"{}\" (broken at call {call})",
            escape::short(&rule.rule, 40)
        ));
    }
    match gone.count() {
        0 => {}
        count => parts.push(many(count, "rule not seen again", "rules not seen again")),
    }
    if parts.is_empty() {
        return "nothing seen".to_owned();
    }
    parts.join(", ")
}

fn thrown(title: &str, sum: &Totals, compactions: &[Compaction]) -> Section {
    let first = |kind: Kind| {
        let mut needed = compactions.iter().flat_map(|own| &own.needed);
        needed.find(|need| need.kind == kind).map(|need| need.call)
    };
    let rows = sum.thrown.iter().map(|(kind, own)| {
        let count = |count: usize| match count {
            0 => Cell::NOT_APPLICABLE,
            count => Cell::count(count),
        };
        row(
            kind.words()[1],
            vec![
                Cell::count(own.before),
                if *kind != Kind::Rule && own.before > 0 && sum.opaque == sum.compactions {
                    Cell::NOT_MEASURED
                } else {
                    Cell::count(own.stayed)
                },
                count(own.needed),
                count(own.fetched),
                count(own.told),
                count(own.without),
                count(own.broken),
                count(own.unknown),
                at(first(*kind)),
            ],
        )
    });
    section(
        "autopsy_thrown",
        title,
        "kind:thrown away|before|stayed|needed|fetched|told|without|broken|unknown|first:first at",
        rows,
    )
    .hide_unmeasured()
}

fn needed_rows(own: &Compaction) -> Vec<Row> {
    let gone = || at(Some(own.call));
    let again = own.again.iter().map(|again| {
        let how = match again.usd {
            Some(usd) => format!("brought {} tokens again, {usd}", tokens(again.tokens.0)),
            None => format!("brought {} tokens again", tokens(again.tokens.0)),
        };
        let kind = if again.is_file { "file" } else { "call" };
        let cells = vec![
            Cell::text(kind),
            gone(),
            at(Some(again.call)),
            Cell::text(how),
        ];
        row(name(&again.what), cells)
    });
    let mut needs: Vec<_> = own.needed.iter().collect();
    // What nobody gave again comes first.
    needs.sort_by_key(|need| match need.outcome {
        Outcome::Told(_) => 0,
        Outcome::Without => 1,
        Outcome::Fetched(_) => 2,
        Outcome::Unknown => 3,
    });
    let needs = needs.into_iter().map(|need| {
        let how = match need.outcome {
            Outcome::Fetched(call) => format!("a tool brought it at call {call}"),
            Outcome::Told(call) => format!("the user typed it before call {call}"),
            Outcome::Without => "not at all".to_owned(),
            Outcome::Unknown => "not known".to_owned(),
        };
        let kind = Cell::text(need.kind.words()[0]);
        row(
            name(&need.what),
            vec![kind, gone(), at(Some(need.call)), Cell::text(how)],
        )
    });
    again.chain(needs).collect()
}

fn rules(only: &Autopsy) -> Section {
    let mut shown: Vec<_> = only
        .rules
        .iter()
        .filter_map(|rule| Some((rule, rule.gone_at()?)))
        .collect();
    shown.sort_by_key(|(rule, (call, _))| (rule.broken_at.is_none(), *call));
    let rows = shown.iter().map(|(rule, (call, fate))| {
        let state = match (fate, &rule.changed_to) {
            (Fate::Changed, Some(said)) => {
                format!("changed to \"{}\"", escape::short(said, LONGEST))
            }
            (Fate::Changed, None) => "changed".to_owned(),
            _ => "lost".to_owned(),
        };
        let broken = rule.broken_at.map_or_else(
            || "not seen again".to_owned(),
            |call| format!("call {call}"),
        );
        row(
            name(&rule.rule),
            vec![Cell::text(state), at(Some(*call)), Cell::text(broken)],
        )
    });
    let last = |rule: &super::RuleFate| rule.fates.values().next_back().copied();
    let ends = only.rules.iter().filter_map(last);
    let count = |wanted: fn(Fate) -> bool| ends.clone().filter(|fate| wanted(*fate)).count();
    let note = format!(
        "after the last compaction: {} kept, {} changed, {} lost, {} that rules cannot tell",
        count(|fate| fate == Fate::Kept),
        count(|fate| fate == Fate::Changed),
        count(|fate| is_gone(fate) && fate != Fate::Changed),
        count(|fate| matches!(fate, Fate::Unsure | Fate::Partial)),
    );
    section(
        "autopsy_rules",
        "Your own instructions",
        "rule:your instruction|state|lost:lost at|broken:broken at",
        rows,
    )
    .with_notes([note])
}

fn breaks(sum: &Totals, calls: usize) -> Section {
    let rows = sum.breaks.iter().map(|(cause, own): (_, &Breaks)| {
        let largest = (calls > 0).then_some(own.largest.0);
        let cells = vec![
            Cell::count(own.calls),
            Cell::tokens(own.tokens),
            money(own.usd, own.tokens.0),
            at(largest),
        ];
        row(cause.words(), cells)
    });
    section(
        "autopsy_breaks",
        "Breaks of the prompt cache",
        "cause:cache break|calls:times|tokens:billed again|cost:above a read|call:largest at",
        rows,
    )
}

fn of_folder(all: &[Autopsy], sum: &Totals) -> Report {
    let compacted = all
        .iter()
        .filter(|own| own.all().any(|one| !one.compactions.is_empty()));
    let rows = compacted.clone().map(|own| {
        let sum = Totals::of(own.all());
        let first = own.compactions.first().map(|compaction| compaction.call);
        let again = Cell::count(sum.files_again + sum.calls_again);
        let missed = sum.thrown.values().map(|row| row.needed).sum();
        row(
            cut_middle(&own.session, LONGEST),
            vec![
                Cell::count(sum.compactions),
                money(
                    (sum.compactions_usd > Usd(0)).then_some(sum.compactions_usd),
                    sum.compactions_tokens.0,
                ),
                again,
                Cell::count(missed),
                Cell::count(sum.rules_lost + sum.rules_changed),
                at(first),
            ],
        )
    });
    let sessions = section(
        "autopsy_sessions",
        "Sessions that were compacted, the worst first",
        "session|compactions:times|cost|again:read again|needed|rules:rules gone|first:first at @1",
        rows,
    );
    let unpriced = match sum.unpriced {
        0 => String::new(),
        count => format!(" ({count} without prices)"),
    };
    let title = format!(
        "{}, {} of them compacted ({}): {}{unpriced}",
        many(all.len(), "session", "sessions"),
        compacted.count(),
        many(sum.compactions, "compaction", "compactions"),
        sum.usd
    );
    Report {
        title,
        lines: vec![sum.sentence()],
        sections: vec![
            sessions,
            thrown("All that they threw away", sum, &[]),
            breaks(sum, 0),
        ],
        next: all
            .first()
            .map(|worst| {
                [
                    "proctor",
                    "autopsy",
                    &escape::shell(&worst.file),
                    "--id",
                    &worst.session,
                ]
                .map(str::to_owned)
                .to_vec()
            })
            .unwrap_or_default(),
        ..Report::default()
    }
}

/// The command that shows the call which most likely went wrong.
fn next(only: &Autopsy) -> Vec<String> {
    let broken = only.rules.iter().find_map(|rule| rule.broken_at);
    let needs = || only.compactions.iter().flat_map(|own| &own.needed);
    let told = needs().find(|need| matches!(need.outcome, Outcome::Told(_)));
    let missed = told.or_else(|| needs().find(|need| need.outcome == Outcome::Without));
    let first = only.compactions.first();
    let call = broken
        .or(missed.map(|need| need.call))
        .or(first.map(|own| own.call));
    let mut words = vec![
        "proctor inspect".to_owned(),
        escape::shell(&only.file),
        format!("--id {}", only.session),
    ];
    if first.is_some_and(|own| !own.is_opaque) {
        words.push("--strategy recorded".to_owned());
    }
    words.push(format!("--at {}", call.unwrap_or(only.fullest.0)));
    words
}

/// The report on one screen of at most 40 lines.
pub fn screen(report: &Report, terminal: Terminal) -> String {
    let columns = terminal.columns();
    let mut tail = vec![String::new()];
    let banners = report.banners.iter().take(2);
    tail.extend(banners.map(|banner| escape::short(&banner.text, columns)));
    tail.extend(command(&report.next, columns));
    let mut lines = Vec::new();
    for room in ROOMS {
        lines = wrap(&escape::plain(&report.title), columns);
        for line in report.lines.iter().take(room.max(3)) {
            lines.extend(wrap(&escape::plain(line), columns));
        }
        for section in report
            .sections
            .iter()
            .filter(|section| section.audience == Audience::Everyone)
        {
            lines.push(String::new());
            lines.extend(compact(section, room, terminal));
        }
        if lines.len() + tail.len() <= LINES {
            break;
        }
    }
    lines.truncate(LINES.saturating_sub(tail.len()));
    lines.extend(tail);
    lines.join("\n") + "\n"
}

/// A section without its title: the first column says what it is about.
fn compact(section: &Section, most_rows: usize, terminal: Terminal) -> Vec<String> {
    let mut short = section.clone().at_most(most_rows);
    short.title.clear();
    let text = terminal.section(&short);
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.contains("──"));
    lines.map(str::to_owned).collect()
}

/// The command that comes next; it breaks between its words, so that it can be copied.
fn command(words: &[String], columns: usize) -> Vec<String> {
    let mut lines = vec!["Next ".to_owned()];
    for word in words {
        let word = escape::plain(word);
        let Some(line) = lines.last_mut() else { break };
        if line.len() > 5 && width(line) + width(&word) + 3 > columns {
            line.push_str(" \\");
            lines.push(format!("{}  {word}", blanks("", 5)));
        } else {
            line.extend([" ", &word]);
        }
    }
    lines.retain(|_| !words.is_empty());
    lines
}
