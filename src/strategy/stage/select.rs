//! Keeps a part of the context, chosen by rule or by a model: the rules are baselines that any model must beat.

use std::fmt::Write as _;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::prelude::*;
use crate::model::Task;
use crate::script::first_chars;
use crate::strategy::model_text;

mod rank;

/// Stands for what was cut. The rounds that are kept begin with the assistant, and a conversation
/// must begin with the user.
const PLACEHOLDER: &str = "[Earlier messages were cut.]";

#[derive(Debug, Deserialize)]
struct Select {
    method: Method,
    budget_tokens: Tokens,
    budget_fraction: f64,
    /// A lot is drawn from it, together with the session and the number of the call.
    seed: u64,
    keep_newest: usize,
    model: Arc<str>,
    input_head_chars: usize,
    max_output_tokens: Tokens,
    /// In place of a budget: by call, what the strategy that is followed came to. Where there is
    /// no entry, nothing is cut.
    #[serde(skip)]
    sizes: Option<BTreeMap<usize, Tokens>>,
}

/// Which rounds are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    /// The newest.
    Tail,
    /// The newest one, and the oldest.
    Lead,
    /// The newest one, and others by lot.
    Random,
    // The newest one, and those that score highest.
    Textrank,
    Tfidf,
    Bm25LastUser,
    Atoms,
    /// The newest one, and those that a model names.
    Model,
}

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    let stage = Select { sizes: knobs.sizes.clone(), ..knobs.read()? };
    let budgets = ["budget_tokens", "budget_fraction"].map(|name| knobs.is_set(name));
    let problem = match budgets {
        [false, false] if stage.sizes.is_none() => "must be set",
        [true, true] => "and `budget_fraction` are set: set one",
        _ => return Ok(Box::new(stage)),
    };
    Err(knobs.wrong("budget_tokens", problem))
}

impl Select {
    /// How many counted tokens of messages are kept at this call; `None` if none is cut.
    fn budget(&self, cx: &Situation) -> Option<Tokens> {
        match &self.sizes {
            Some(sizes) => sizes.get(&cx.call).map(|size| cx.scale.counted(*size)),
            None if self.budget_tokens > Tokens::ZERO => Some(self.budget_tokens),
            None => {
                let share = cx.window.effective().fraction(self.budget_fraction);
                Some(cx.scale.room(share))
            }
        }
    }
}

impl Stage for Select {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let budget = self.budget(cx);
        let Some(budget) = budget.filter(|budget| context.size().tokens > *budget) else {
            return Step::Done(Ok(Patch::default()));
        };
        let entries = context.entries();
        if self.method == Method::Tail {
            return Step::Done(Ok(self.tail(context, budget, cx)));
        }
        let (head, rounds) = cut::rounds(entries);
        let others = rounds.len().saturating_sub(self.keep_newest);
        let seed = [self.seed, cx.lot, cx.call as u64];
        let order = match self.method {
            // Handled above, at the cost of what it cuts.
            Method::Tail => return Step::Done(Ok(Patch::default())),
            Method::Lead => {
                let what = "the oldest rounds and the newest";
                ((0..others).collect(), Until::OneIsTooLarge, what)
            }
            Method::Random => (lot(others, seed), Until::NoneIsLeft, "rounds chosen by lot"),
            Method::Textrank => by_score(entries, &rounds, None, &rank::textrank),
            Method::Tfidf => by_score(entries, &rounds, None, &rank::tfidf),
            Method::Bm25LastUser => {
                // The question itself is left out of the scores.
                let asked = entries.iter().rposition(Entry::is_typed);
                let query = rank::text_of(asked.map(|at| &entries[at]));
                by_score(entries, &rounds, asked, &|texts| rank::bm25(texts, &query))
            }
            Method::Atoms => by_score(entries, &rounds, None, &rank::by_atoms),
            Method::Model => {
                if others == 0 {
                    return Step::Done(Ok(Patch::default()));
                }
                let request = self.question(entries, &rounds[..others], budget, cx);
                let owned = entries.to_vec();
                return Step::ask(request, move |answer| {
                    let order = model_text::text_of(answer).and_then(|text| named(&text, others));
                    Step::Done(order.map(|order| {
                        let order = (order, Until::NoneIsLeft, "rounds named by a model");
                        self.cut(&owned, (head, rounds), budget, order, cx)
                    }))
                });
            }
        };
        Step::Done(Ok(self.cut(entries, (head, rounds), budget, order, cx)))
    }
}

impl Select {
    /// The patch that keeps the newest rounds within the budget. Costs what is cut and the number
    /// of rounds that always stay, however long the context is.
    fn tail(&self, context: &Context, budget: Tokens, cx: &Situation) -> Patch {
        let entries = context.entries();
        let Some(mut end) = cut::round_starts(entries).next() else {
            return Patch::default();
        };
        let room = budget - placeholder(cx).size().tokens;
        let mut left = context.size().tokens - size(&entries[..end]);
        let next = cut::round_starts(entries).skip(1).chain([entries.len()]);
        // A round may go as long as so many come after it.
        let newest = cut::round_starts(entries).skip(self.keep_newest);
        for (next, _) in next.zip(newest) {
            if left <= room {
                break;
            }
            left = left - size(&entries[end..next]);
            end = next;
        }
        let oldest = 0..end;
        let gaps = std::slice::from_ref(&oldest);
        patch(entries, gaps, budget, "the newest rounds", cx)
    }

    /// The patch that keeps rounds within the budget, in this order.
    fn cut(
        &self,
        entries: &[Entry],
        (head, rounds): (Range<usize>, Vec<Range<usize>>),
        budget: Tokens,
        (order, until, what): (Vec<usize>, Until, &str),
        cx: &Situation,
    ) -> Patch {
        let room = budget - placeholder(cx).size().tokens;
        let sizes: Vec<Tokens> = rounds.iter().map(|round| size(&entries[round.clone()])).collect();
        let stay = kept(&sizes, self.keep_newest, room, order, until);
        if rounds.is_empty() {
            return Patch::default();
        }
        patch(entries, &gaps(&head, &rounds, &stay), budget, what, cx)
    }

    /// Asks which of these rounds should stay.
    fn question(
        &self,
        entries: &[Entry],
        rounds: &[Range<usize>],
        budget: Tokens,
        cx: &Situation,
    ) -> Request {
        let mut text = format!(
            "An agent's conversation has become too long. These are its older parts, oldest first, each cut off after \
             {} characters. About {budget} tokens of messages can stay. Which parts does the work still need? Answer \
             with their numbers and nothing else, the most important first.\n",
            self.input_head_chars
        );
        for (at, round) in rounds.iter().enumerate() {
            let whole = rank::text_of(&entries[round.clone()]);
            let head = first_chars(&whole, self.input_head_chars);
            let words: Vec<&str> = head.split_whitespace().collect();
            let _ = write!(text, "\n[{at}] {}", words.join(" "));
        }
        Request {
            model: (&*self.model != "same").then(|| self.model.clone()),
            ..Request::of_text(cx.purpose(), Task::Select, text, self.max_output_tokens)
        }
    }
}

/// The order of the rounds by their score, until when they are tried, and the words for it.
fn by_score(
    entries: &[Entry],
    rounds: &[Range<usize>],
    except: Option<usize>,
    score: &dyn Fn(&[String]) -> Vec<f64>,
) -> (Vec<usize>, Until, &'static str) {
    let order = rank::order(entries, rounds, except, score);
    (order, Until::NoneIsLeft, "rounds chosen by score")
}

fn size(entries: &[Entry]) -> Tokens {
    entries.iter().map(|entry| entry.size().tokens).sum()
}

fn placeholder(cx: &Situation) -> Entry {
    Entry::written(Origin::Authored, PLACEHOLDER, Tag::Meta, &cx.counts)
}

/// The patch that cuts these ranges, oldest first, and puts the placeholder into the first.
fn patch(
    entries: &[Entry],
    gaps: &[Range<usize>],
    budget: Tokens,
    what: &str,
    cx: &Situation,
) -> Patch {
    let cut = gaps.iter().flat_map(|gap| &entries[gap.clone()]);
    // Nothing to cut, or nothing but the placeholder of the last time.
    if cut.clone().count() <= 1 {
        return Patch::default();
    }
    let mut stand_in = placeholder(cx);
    stand_in.origin = Origin::derived_from(cut);
    let mut with = Some(stand_in);
    let edits = gaps.iter().cloned().map(|gap| Edit::replacing(gap, with.take()));
    let reason = format!("{what} within {budget} tokens are kept");
    Patch::new(reason, edits.collect())
}

/// The numbers below `others` in an answer, each once, in its order. An answer without one is none.
fn named(answer: &str, others: usize) -> Result<Vec<usize>, StageError> {
    let mut order = Vec::new();
    for word in answer.split(|c: char| !c.is_ascii_digit()) {
        if let Ok(at) = word.parse()
            && at < others
            && !order.contains(&at)
        {
            order.push(at);
        }
    }
    if order.is_empty() {
        return Err(StageError::NotASummary);
    }
    Ok(order)
}

/// How long rounds are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    OneIsTooLarge,
    NoneIsLeft,
}

/// The newest rounds, and of the others, in this order, those that fit beside them.
fn kept(
    sizes: &[Tokens],
    newest: usize,
    room: Tokens,
    order: Vec<usize>,
    until: Until,
) -> Vec<bool> {
    let mut kept = vec![false; sizes.len()];
    let (others, newest) = sizes.split_at(sizes.len().saturating_sub(newest));
    kept[others.len()..].fill(true);
    let mut total: Tokens = newest.iter().copied().sum();
    for at in order.into_iter().filter(|at| *at < others.len()) {
        if total + others[at] <= room {
            total += others[at];
            kept[at] = true;
        } else if until == Until::OneIsTooLarge {
            break;
        }
    }
    kept
}

/// All rounds but the newest, in random order.
fn lot(others: usize, from: [u64; 3]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..others).collect();
    let mut key = [0; 32];
    for (part, number) in key.chunks_exact_mut(8).zip(from) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    let mut draws = ChaCha8Rng::from_seed(key);
    // Fisher–Yates; the bias of the remainder is far below anything an order could matter.
    for last in (1..order.len()).rev() {
        let at = draws.random::<u64>() % (last as u64 + 1);
        order.swap(last, usize::try_from(at).unwrap_or(last));
    }
    order
}

/// The ranges to cut, in order: the head with all rounds up to the first kept one, then each run
/// between two kept rounds.
fn gaps(head: &Range<usize>, rounds: &[Range<usize>], kept: &[bool]) -> Vec<Range<usize>> {
    let mut gaps = vec![head.clone()];
    let mut open = true;
    for (round, kept) in rounds.iter().zip(kept) {
        if *kept {
            open = false;
        } else if open && let Some(gap) = gaps.last_mut() {
            gap.end = round.end;
        } else {
            gaps.push(round.clone());
            open = true;
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted;
    use crate::strategy::stage::trial::{Trial, build, said, typed};
    use crate::units::ApiCallId;

    /// Which rounds stay: each of a hundred tokens, six of them, in a window of a thousand.
    #[track_caller]
    fn check(knobs: &str, left: &str) {
        let mut trial = Trial::new("select", knobs).within(1_000);
        trial.append([typed("begin")]);
        for (at, words) in [
            "the quick fox",
            "the path src/a.rs and code 48213",
            "parser parser parser",
            "a fox and a hen",
            "zebra yak xerus",
            "the end",
        ]
        .iter()
        .enumerate()
        {
            let text = format!("{at} {words} {}", ". ".repeat(200));
            let mut message = said(&text[..400]);
            message.details.api_call = Some(ApiCallId(at.to_string().into()));
            trial.append([message]);
            if at == 4 {
                trial.append([typed("is the parser done?")]);
            }
        }
        trial.fire().unwrap();
        let kept = trial.texts();
        let kept = kept.iter().filter_map(|text| text.chars().next());
        let kept: String = kept.filter(char::is_ascii_digit).collect();
        assert_eq!(kept, left, "{knobs}");
        assert_eq!(trial.fire().unwrap(), None, "{knobs}");
    }

    #[test]
    fn each_method_keeps_what_it_says_within_the_budget() {
        check("budget_tokens = 330", "345");
        check("method = 'lead'\nbudget_tokens = 330", "015");
        check("method = 'lead'\nbudget_fraction = 0.33", "015");
        check("method = 'bm25_last_user'\nbudget_tokens = 220", "25");
        check("method = 'atoms'\nbudget_tokens = 220", "15");
        check("method = 'tfidf'\nbudget_tokens = 220", "45");
        check("method = 'textrank'\nbudget_tokens = 330", "145");
        check("method = 'textrank'\nbudget_tokens = 50", "5");
    }

    #[test]
    fn a_model_names_rounds_and_is_not_asked_twice_for_the_same() {
        // The answers of the model on trial are `S`, which names none.
        let mut trial = Trial::new("select", "method = 'model'\nbudget_tokens = 330").within(1_000);
        trial.append([typed("begin")]);
        for at in 0..6 {
            let mut message = said(&format!("part {at} {}", ". ".repeat(196)));
            message.details.api_call = Some(ApiCallId(at.to_string().into()));
            trial.append([message]);
        }
        assert!(trial.fire().is_err());
        assert_eq!(trial.texts().len(), 7);
        let listed = trial.asked()[0].messages[0].model_text()[0].to_string();
        assert!(listed.contains("\n[4] part 4 ."), "{listed}");
        assert!(!listed.contains("[5]"), "the newest stays anyway");
        trial.will_answer(Ok(scripted::response("4, 1, 77, 1 and 0")));
        trial.fire().unwrap();
        let texts = trial.texts();
        let kept = texts[1..].iter().map(|text| &text[..6]);
        assert_eq!(kept.collect::<Vec<_>>(), ["part 1", "part 4", "part 5"]);
    }

    #[test]
    fn each_session_draws_lots_of_its_own() {
        let drawn = |session, call| lot(20, [1, session, call]);
        assert_eq!(drawn(3, 7), drawn(3, 7));
        assert_ne!(drawn(3, 7), drawn(4, 7));
        assert_ne!(drawn(3, 7), drawn(3, 8));
    }

    #[test]
    fn one_budget_is_set() {
        for (knobs, problem) in [
            ("", "must be set"),
            ("budget_tokens = 9\nbudget_fraction = 0.5", "and `budget_fraction` are set: set one"),
        ] {
            let error = build("select", knobs).unwrap_err().to_string();
            assert!(error.contains(&format!("`select.budget_tokens` {problem}")), "{error}");
        }
    }
}
