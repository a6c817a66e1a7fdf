//! The sentences of an advice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::case::{Case, Three, is_above, is_lost};
use super::{Answer, RECORDED, Rows, RunRow, Verdict, accepting};
use crate::compare::judge::{AxisFinding, State};
use crate::compare::prediction::Prediction;
use crate::compare::tasks::TasksSolved;
use crate::compare::words::{around, listed, money, percent, points};
use crate::compare::{Axis, Margins, NoteCode, Sample, VerdictLine};
use crate::naming::short_name;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::{Tokens, many};

/// Strategies to avoid that are named one by one; the others are counted.
const SHOWN: usize = 2;

/// A saving that turns by less is about nothing under both assumptions.
const LEAST_TURN: f64 = 0.01;

/// The largest share of a bill that one session may have unsaid.
const LARGE: f64 = 0.4;

impl Verdict {
    /// The advice in sentences: what to use, or why nothing is recommended, what to avoid, and what it turns
    /// with.
    pub fn lines(&self) -> Vec<VerdictLine> {
        let mut lines: Vec<VerdictLine> = self.tasks.iter().map(TasksSolved::line).collect();
        lines.extend(self.prediction.as_ref().map(Prediction::line));
        // They say more than the replay of what the agents did.
        if lines.is_empty() {
            lines.extend(self.said.iter().cloned());
        }
        if !self.turns_with.is_empty() {
            let text = format!("Turns with: {}.", self.turns_with.join("; "));
            lines.push(VerdictLine::new(NoteCode::TurnsWith, text));
        }
        let avoid = self.avoid.iter().filter(|one| !one.is_broken);
        for one in avoid.clone().take(SHOWN) {
            let text = format!("Avoid {}: {}.", short_name(&one.strategy), one.why);
            lines.push(VerdictLine::new(NoteCode::Avoid, text));
        }
        let others = avoid.skip(SHOWN).map(|one| short_name(&one.strategy));
        let others = around("Avoid also ", &others.collect::<Vec<_>>(), ".");
        lines.extend((!others.is_empty()).then(|| VerdictLine::new(NoteCode::Avoid, others)));
        lines
    }

    /// The controls that the sentences quote: each is shown under its strategy.
    pub(crate) fn quoted_controls(&self) -> impl Iterator<Item = &str> {
        self.contenders.iter().flat_map(|one| &one.control).map(String::as_str).filter(|control| {
            let name = short_name(control);
            let mut words = self.sentences.iter().flat_map(|text| text.split([' ', ',', ':', ';']));
            words.any(|word| word.trim_end_matches('.') == name)
        })
    }
}

impl Rows {
    /// The sentences on an answer and the case that it names.
    pub(super) fn say(
        &self,
        answer: Answer,
        case: Option<&Case<'_>>,
        cases: &[Case<'_>],
    ) -> Vec<VerdictLine> {
        let text = match (answer, case) {
            (Answer::Use, Some(case)) => self.use_it(case, cases),
            (Answer::PlainTail, Some(case)) => plain_tail(case),
            (Answer::Ahead, Some(case)) => self.ahead(case),
            (Answer::Trade, Some(case)) => self.trade(case),
            (Answer::Keep, Some(case)) => self.keep(case, cases),
            (Answer::Undecided, Some(case)) => self.undecided(case),
            (Answer::FewSessions, case) => self.few(case),
            (answer, _) => answer.sentence(),
        };
        let mut said = vec![VerdictLine::new(answer.code(), text)];
        if answer != Answer::PlainTail && self.clusters >= FEWEST_SESSIONS {
            let plain = cases.iter().find(|other| other.is_plain_tail());
            said.extend(plain.map(|case| VerdictLine::new(NoteCode::PlainTail, plain_tail(case))));
        }
        if answer == Answer::Ahead {
            let trade = cases.iter().find(|other| other.is_trade());
            said.extend(trade.map(|case| VerdictLine::new(NoteCode::Trade, self.trade(case))));
        }
        said
    }

    fn money(&self, amount: f64) -> String {
        money(amount, self.is_in_dollars())
    }

    /// A bill, or the word where it is not known.
    fn bill(&self, amount: Option<f64>) -> String {
        amount.map_or_else(|| "bill".to_owned(), |amount| self.money(amount))
    }

    /// The bill of doing nothing in the sessions that it completes, or in all if it completes none.
    pub(super) fn nothing_costs(&self) -> Option<f64> {
        self.costs_there(&self.nothing)
    }

    /// The amount that a case saves of that; `None` where it is not known of all.
    pub(super) fn saves(&self, case: &Case<'_>) -> Option<f64> {
        let saved = self.nothing_costs()? - self.costs_there(&case.row.sample)?;
        (!case.is_in_tokens()).then_some(saved)
    }

    /// Whether the two bills read the same, and their difference is 0 %.
    fn costs_as_much(&self, case: &Case<'_>) -> bool {
        let same = case.bill().is_some_and(|bill| percent(bill.difference()) == "0");
        same && self.bill(self.costs_there(&case.row.sample)) == self.bill(self.nothing_costs())
    }

    /// The bill of a sample in those sessions.
    pub(super) fn costs_there(&self, sample: &Sample) -> Option<f64> {
        self.total(sample, |id| self.is_meant(id))
    }

    /// Whether doing nothing completes in this session, if it does in any.
    fn is_meant(&self, id: &str) -> bool {
        self.fits.is_empty() || self.fits.contains(id)
    }

    /// `$4.10 (bill −5 % [−7, −3]; it fired in 3 of 10)`; `more` stands behind the dollars.
    fn amount(&self, case: &Case<'_>, more: &str) -> String {
        let bill = case.bill().map(AxisFinding::in_words).into_iter();
        let words: Vec<String> = bill.chain(self.fired(case)).collect();
        let amount = self.saves(case).map(|amount| self.money(amount)).unwrap_or_default();
        format!("{amount}{more} ({})", words.join("; "))
    }

    /// `it fired in 3 of 10; in the others no prompt passed 43k tokens`, where that is less than half of the
    /// sessions.
    fn fired(&self, case: &Case<'_>) -> Option<String> {
        let (fired, all) = (case.row.fired, self.clusters);
        if fired * 2 >= all {
            return None;
        }
        let mut text = format!("it fired in {fired} of {all}");
        if let Some(largest) = case.row.largest_elsewhere.map(Tokens::in_short) {
            let _ = write!(text, "; in the others no prompt passed {largest} tokens");
        }
        Some(text)
    }

    /// ` SESSION is 43 % of that bill.`, where one session weighs so much.
    fn weight(&self, case: &Case<'_>) -> String {
        let mut clusters: BTreeMap<&str, f64> = BTreeMap::new();
        for (id, session) in &self.nothing.sessions {
            let bill = self.total(&case.row.sample, |other| other == id);
            let cluster = session.cluster.as_deref().unwrap_or(id);
            *clusters.entry(cluster).or_default() += bill.unwrap_or(0.0);
        }
        let all: f64 = clusters.values().sum();
        let largest = clusters.iter().max_by(|one, next| one.1.total_cmp(next.1));
        match largest {
            Some((name, bill)) if *bill > LARGE * all => {
                format!(" {name} is {} % of its bill.", percent(bill / all))
            }
            Some(_) | None => String::new(),
        }
    }

    /// `, and gives up 7 points of actions`, where that is more than the margin.
    fn loses(&self, case: &Case<'_>) -> String {
        let quality = case.nothing.iter().flat_map(Three::quality);
        let lost = quality.filter(|found| is_lost(found, &self.rule.margins));
        let words = lost.map(|one| format!("{} points of {}", points(one.difference()), one.axis));
        around(", and gives up ", &words.collect::<Vec<_>>(), "")
    }

    /// ` on the 7 of 9 sessions with a known bill`, or ` that fit their window`, where that is not all: the sessions of
    /// [`Self::nothing_costs`].
    pub(super) fn priced(&self) -> String {
        let (all, fitting) = (self.clusters, self.fitting());
        let choice = !self.fits.is_empty();
        let key = self.bill_key();
        let priced = self
            .clusters_with(|id, session| self.is_meant(id) && session.metrics.contains_key(key));
        let whole =
            if self.is_recorded() { "that run to the end" } else { "that fit their window" };
        let which = match priced {
            0 => return String::new(),
            priced if priced == all => return String::new(),
            priced if priced == fitting && choice => whole.to_owned(),
            _ if fitting < all && choice => format!("{whole} and have a known bill"),
            _ => "with a known bill".to_owned(),
        };
        format!(" on the {priced} of {all} sessions {which}")
    }

    /// `; it beats tail@codex on facts +10 [+8, +12]`, with what that costs.
    fn beaten_control(&self, case: &Case<'_>) -> String {
        let Some((three, control)) = case.control.as_ref().zip(case.row.control.as_ref()) else {
            return String::new();
        };
        let mut better: Vec<String> =
            three.quality().filter(|found| is_above(found)).map(AxisFinding::in_words).collect();
        if better.is_empty() {
            better.extend(three.bill.as_ref().map(AxisFinding::in_words));
        }
        let totals = case.total.zip(self.total(control, |_| true));
        let paid = match totals.map(|(own, other)| (own - other) / self.clusters as f64) {
            Some(more) if more > 0.0 => format!(", for {} more a session", self.money(more)),
            Some(_) | None => String::new(),
        };
        let name = short_name(&control.strategy);
        format!("; it beats {name} on {}{paid}", listed(&better))
    }

    /// Another that is recommended, with what it keeps better than the first, and what that costs.
    fn beside(&self, first: &Case<'_>, other: &Case<'_>) -> String {
        let better = Three::between(&first.row.sample, &other.row.sample, &self.rule).better();
        let title = other.row.sample.title();
        match first.total.zip(other.total) {
            Some((least, own)) => {
                let more = self.money(own - least);
                let better = around(", ", &better, "");
                format!("{title}{better} for {more} more")
            }
            None => title,
        }
    }

    fn use_it(&self, case: &Case<'_>, cases: &[Case<'_>]) -> String {
        let apply = " `--apply` writes it to a file.";
        let apply = if case.row.is_program { "" } else { apply };
        let twins = cases.iter().filter(|other| other.is_recommended).skip(1);
        let (same, others): (Vec<&Case<'_>>, Vec<&Case<'_>>) = twins.partition(|other| {
            let three = Three::between(&case.row.sample, &other.row.sample, &self.rule);
            three.all().all(|found| found.state == State::Same)
        });
        let same: Vec<String> = same.iter().map(|twin| twin.row.sample.title()).collect();
        let same = around(" (the same: ", &same, ")");
        let others: Vec<String> = others.iter().map(|one| self.beside(case, one)).collect();
        let others = around(" Shown as well: ", &others, ".");
        let control = self.beaten_control(case);
        let why = match &case.nothing {
            Some(three) => {
                let in_words = three.in_state(|_| true);
                let usual = Margins::default();
                let accepts_loss = three.quality().any(|found| is_lost(found, &usual));
                let keeps = if accepts_loss {
                    "gives up no more than the margins accept"
                } else {
                    "keeps as much as doing nothing"
                };
                let (amount, kept) = (self.amount(case, ""), listed(&in_words));
                let priced = self.priced();
                format!("It saves {amount}{priced} and {keeps} ({kept}){control}")
            }
            None => format!(
                "Nothing here that runs to the end, and is shown to keep as much, costs less than its {}{}{control}",
                self.bill(case.total),
                self.excess(case).map_or_else(String::new, |dearer| format!(": {dearer}"))
            ),
        };
        let (title, sessions) = (case.row.sample.title(), &self.population);
        let (limit, unfit, weight) = (self.limit(), self.unfit(), self.weight(case));
        format!(
            "Use {title}{same}. {why}. Shown on {sessions}{limit}.{unfit}{weight}{others}{apply}"
        )
    }

    /// Names the axis that has no items on either side, so that these sessions cannot show it.
    fn limit(&self) -> &'static str {
        match (self.has_facts(), self.nothing.has(Axis::Actions)) {
            (true, false) => ", which say nothing of actions (no later one names a detail)",
            (false, true) => ", which say nothing of facts (none was planted)",
            (true, true) | (false, false) => "",
        }
    }

    /// Whether doing nothing is what an agent did that compacted, and not full history.
    fn is_recorded(&self) -> bool {
        self.nothing.strategy == RECORDED
    }

    /// In how many sessions doing nothing completes, where that is not all.
    fn unfit(&self) -> String {
        let all = self.clusters;
        let unfit = self.clusters_with(|id, _| !self.fits.contains(id));
        let fits = match all.saturating_sub(unfit) {
            0 if unfit > 0 => "no session".to_owned(),
            some if some == all => return String::new(),
            some => format!("{some} of {all} sessions"),
        };
        if self.is_recorded() {
            format!(" What you have runs to the end in {fits}.")
        } else {
            format!(" Full history fits the window in {fits}.")
        }
    }

    fn trade(&self, case: &Case<'_>) -> String {
        let name = case.row.sample.title();
        let (mut given, mut flags) = (Vec::new(), Vec::new());
        for found in case.given_up() {
            let Some(bounds) = found.bounds else { continue };
            let [least, most] = [bounds.interval_upper, bounds.interval_lower].map(points);
            let (axis, points) = (found.axis, points(bounds.difference));
            given.push(format!("{points} points of {axis} [{least}, {most}]"));
            flags.push(format!("`--margin {axis}={}`", accepting(found)));
        }
        let takes = if flags.len() == 1 { "takes" } else { "take" };
        let how = match self.refusal(case) {
            None => format!("{} {takes} it", listed(&flags)),
            Some(why) => format!("besides, {why}"),
        };
        let (amount, given) = (self.amount(case, ""), listed(&given));
        let sessions = &self.population;
        format!(
            "{name} is a trade: it saves {amount}{} and gives up {given}; {how}. Shown on {sessions}{}.",
            self.priced(),
            self.limit()
        )
    }

    fn ahead(&self, case: &Case<'_>) -> String {
        let name = case.row.sample.title();
        let bill = self.bill(case.total);
        let saves = match &case.nothing {
            Some(_) => format!("it saves {}", self.amount(case, "")),
            None => format!("it is the cheapest of what keeps as much ({bill})"),
        };
        let mut text = format!("{name} is ahead, not decided: {saves}");
        if let Some((three, control)) = case.control.as_ref().zip(case.row.control.as_ref()) {
            let quality: Vec<String> = three.all().map(AxisFinding::in_words).collect();
            let (control, quality) = (short_name(&control.strategy), listed(&quality));
            let _ = write!(text, ", and against {control} it has {quality}");
        }
        let more = case.more_sessions.unwrap_or(1);
        let more = many(more, "more session", "more sessions");
        let (why, limit, unfit) = (&case.obstacle, self.limit(), self.unfit());
        format!("{text}. Not shown: {why}. About {more} like these would show it{limit}.{unfit}")
    }

    fn keep(&self, case: &Case<'_>, cases: &[Case<'_>]) -> String {
        let name = short_name(case.row.name());
        let cost = self.bill(self.nothing_costs()) + &self.priced();
        let loses = self.loses(case);
        let why = match self.saves(case) {
            Some(_) if self.costs_as_much(case) => {
                let fired: Vec<String> = self.fired(case).into_iter().collect();
                let fired = around(" (", &fired, ")");
                format!(
                    "Nothing here costs less than its {cost}: {name} costs as much{fired}{loses}"
                )
            }
            Some(saved) if saved < 0.0 => format!(
                "Everything else costs more than its {cost}: the cheapest, {name}, costs {}",
                self.amount(case, " more")
            ),
            Some(_) => format!(
                "Nothing here is shown to beat its {cost}: {name} has the lowest bill and saves {}{loses}; {}",
                self.amount(case, ""),
                case.obstacle
            ),
            None => {
                format!("Nothing here is shown to beat its {cost}: as to {name}, {}", case.obstacle)
            }
        };
        let paid = cases.iter().find_map(|case| self.paid_for(case)).unwrap_or_default();
        format!("Keep what you have. {why}.{paid}{}", self.unfit())
    }

    /// That a case keeps more than its control, for more than doing nothing costs.
    fn paid_for(&self, case: &Case<'_>) -> Option<String> {
        let dearer = case.bill()?.state == State::Worse && !case.is_in_tokens();
        let better = case.control.as_ref()?.better();
        let control = case.row.control.as_ref()?;
        (dearer && !better.is_empty()).then(|| {
            format!(
                " A trade: {} keeps more than {} ({}) for {}.",
                short_name(case.row.name()),
                short_name(&control.strategy),
                listed(&better),
                self.amount(case, " more than doing nothing")
            )
        })
    }

    fn undecided(&self, case: &Case<'_>) -> String {
        let (name, why, unfit) = (short_name(case.row.name()), &case.obstacle, self.unfit());
        let Some(total) = case.total else {
            return format!("Not decided: as to {name}, {why}.{unfit}");
        };
        // A control may cost less still.
        let among = case.hindrance.as_ref().map_or("", |_| " of the strategies");
        let above = self.excess(case).filter(|_| case.hindrance.is_some());
        let above = above.map_or_else(String::new, |dearer| format!(": {dearer}"));
        let bill = self.money(total);
        format!("Not decided: {name} has the lowest bill{among} ({bill}){above}; {why}.{unfit}")
    }

    /// One session, or two to five: what was seen, and what to do.
    fn few(&self, case: Option<&Case<'_>>) -> String {
        let (all, clusters) = (self.nothing.sessions.len(), self.clusters);
        let cost = match self.total(&self.nothing, |_| true) {
            Some(total) => format!("costs {}", self.money(total)),
            None => "has no price".to_owned(),
        };
        let whole = self.fits_everywhere();
        let nothing = if whole {
            format!("doing nothing {cost}")
        } else if self.fits.is_empty() {
            format!("full history {cost} and does not fit the window")
        } else {
            // A session with side chains is several conversations.
            let of = if clusters == 1 || clusters == all { "them" } else { "their conversations" };
            format!("full history {cost} and fits the window in {} of {of}", self.fits.len())
        };
        let best = match case.and_then(|case| Some((case, case.total?))) {
            Some((case, total)) => {
                let dearer = whole && self.saves(case).is_some_and(|saved| saved <= 0.0);
                let kept = if self.has_facts() { "" } else { " of later actions" };
                let (title, total) = (case.row.sample.title(), self.money(total));
                if dearer {
                    format!("nothing that kept as much{kept} is cheaper, {title} costs {total}")
                } else {
                    format!("the cheapest that kept as much{kept} is {title}, {total}")
                }
            }
            None => "nothing that can be compared kept as much".to_owned(),
        };
        if clusters == 1 {
            let on = if all == 1 {
                "this session".to_owned()
            } else {
                format!("these {all} conversations of one session")
            };
            return format!(
                "On {on}: {nothing}; {best}. One session decides nothing: give a folder."
            );
        }
        let range = case.and_then(|case| self.range(case)).unwrap_or_default();
        format!(
            "On these {clusters} sessions: {nothing}; {best}{range}. {FEWEST_SESSIONS} are the least that decide anything."
        )
    }

    /// From session to session, how much of the bill is saved: ` (2 % to 9 % of the bill saved from session to session)`.
    fn range(&self, case: &Case<'_>) -> Option<String> {
        let saved = self.nothing.sessions.keys().filter_map(|id| {
            let (own, nothing) = self.bills_in(case.row, id)?;
            Some(1.0 - own / nothing)
        });
        let saved: Vec<f64> = saved.filter(|share| share.is_finite()).collect();
        let low = saved.iter().copied().reduce(f64::min)?;
        let high = saved.iter().copied().reduce(f64::max)?;
        let [low, high] = [low, high].map(|share| {
            let sign = if share < 0.0 { "−" } else { "" };
            format!("{sign}{} %", percent(share))
        });
        let what = "of the bill saved from session to session";
        Some(format!(" ({low} to {high} {what})"))
    }

    /// The assumptions under which the recommendation is another one, or the sign of what a strategy saves.
    pub(super) fn turns(&self, cases: &[Case<'_>], named: Option<&Case<'_>>) -> Vec<String> {
        let sessions = self.nothing.sessions.values();
        let known: BTreeSet<&String> = sessions.flat_map(|one| one.alternatives.keys()).collect();
        let turns = known.into_iter().filter_map(|at| {
            let mut other = self.clone();
            let rows = other.strategies.iter_mut();
            let samples = rows.flat_map(|row| [Some(&mut row.sample), row.control.as_mut()]);
            for sample in samples.flatten().chain([&mut other.nothing]) {
                sample.assume(at);
            }
            self.turn(cases, named, at, &other)
        });
        turns.collect()
    }

    /// What another assumption changes, whose rows are `other`: the recommendation, or the sign of what a strategy
    /// saves against full history. `at` says the assumption: `at a read price of 0.1 of input`.
    fn turn(
        &self,
        cases: &[Case<'_>],
        named: Option<&Case<'_>>,
        at: &str,
        other: &Self,
    ) -> Option<String> {
        let (before, after) = (recommended(cases), recommended(&other.cases()));
        if let Some(lost) = before.iter().find(|name| !after.contains(name)) {
            return Some(format!("{at} {lost} is not recommended"));
        }
        if let Some(won) = after.iter().find(|name| !before.contains(name)) {
            return Some(format!("{at} {won} is recommended"));
        }
        let mut rows: Vec<&RunRow> = self.sound().collect();
        let first = named.map(|case| case.row.name());
        rows.sort_by_key(|row| Some(row.name()) != first);
        rows.into_iter().find_map(|row| {
            let own = other.sound().find(|own| own.name() == row.name())?;
            let (before, after) = (self.share_saved(row)?, other.share_saved(own)?);
            let changes = before * after < 0.0 && after.abs() >= LEAST_TURN;
            let name = short_name(row.name());
            let saves = if after > 0.0 {
                format!("saves {} % of full history's bill", percent(after))
            } else {
                format!("costs {} % more than full history", percent(after))
            };
            changes.then(|| format!("{at} {name} {saves}"))
        })
    }

    /// The share of full history's bill that a row saves.
    fn share_saved(&self, row: &RunRow) -> Option<f64> {
        let own = self.total(&row.sample, |_| true)?;
        Some(1.0 - own / self.total(&self.nothing, |_| true)?)
    }
}

/// The titles of the cases that are recommended.
fn recommended(cases: &[Case<'_>]) -> Vec<String> {
    cases.iter().filter(|case| case.is_recommended).map(|case| case.row.sample.title()).collect()
}

fn plain_tail(case: &Case<'_>) -> String {
    let control = case.row.control.as_ref().map_or("", |one| &one.strategy);
    let (name, control) = (short_name(case.row.name()), short_name(control));
    format!(
        "Your program {name} is a plain tail: the same bill and the same facts as {control}, which keeps the newest \
         rounds in the same size and no more."
    )
}
