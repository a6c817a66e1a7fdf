//! The simulated help desk: customers and orders, and what looking them up and changing them shows.
//!
//! Many short results instead of few long ones, and ids instead of paths. What was changed stays
//! changed: a later look at the same order shows it.

use serde_json::{Value, json};

use super::facts::{self, Channel, Planned};
use super::output::{Place, clock};
use super::prose::{self, Topic};
use super::random::{ID, Random};
use super::words::{CODE, HELP_DESK, SIZES, fill};
use super::workspace::{Action, Choice, Intent, Limits, Round, Spot, Workspace};
use super::{Language, Recipe};

/// Look-ups that can be long, for rounds that must show much.
const LONG: [(Intent, u64); 3] = [(Intent::Look, 4), (Intent::Policy, 3), (Intent::History, 3)];

/// Customers, their orders, and the case that is open.
#[derive(Debug)]
pub(crate) struct HelpDesk {
    customers: Vec<Customer>,
    orders: Vec<Order>,
    /// The customer whose case is open.
    current: usize,
    /// Orders that were looked at.
    visited: Vec<usize>,
    /// The order that was changed last.
    changed: Option<usize>,
    articles: u64,
    /// Draws what exists, apart from what is done with it.
    random: Random,
    language: Language,
}

#[derive(Debug)]
struct Customer {
    id: String,
    since: u64,
    /// Indices of the customer's orders.
    orders: Vec<usize>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Order {
    id: String,
    item: &'static str,
    /// The item in English.
    english: &'static str,
    quantity: u64,
    cents: u64,
    refunded: u64,
    state: &'static str,
    carrier: &'static str,
    parcel: String,
}

impl Order {
    fn value(&self) -> Value {
        json!({
            "order": self.id,
            "item": self.item,
            "quantity": self.quantity,
            "total": money(self.cents),
            "refunded": money(self.refunded),
            "status": self.state,
            "carrier": self.carrier,
            "parcel": self.parcel,
        })
    }
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A sentence about the case.
fn said(random: &mut Random, topic: &Topic, bank: &[&'static str]) -> String {
    let template = prose::template(random, topic, bank, &[], 8);
    let is_first = topic.earlier.is_empty();
    let earlier = if is_first {
        &topic.path
    } else {
        &topic.earlier
    };
    topic.fill(template, &[("earlier", earlier)])
}

/// Sentences of these banks by turns.
fn sentences(
    random: &mut Random,
    topic: &Topic,
    count: usize,
    banks: &[&[&'static str]],
) -> String {
    let sentences = (0..count).map(|at| said(random, topic, banks[at % banks.len()]));
    sentences.collect::<Vec<_>>().join(topic.language.gap())
}

impl HelpDesk {
    pub(crate) fn new(recipe: &Recipe) -> Self {
        let mut desk = Self {
            customers: Vec::new(),
            orders: Vec::new(),
            current: 0,
            visited: Vec::new(),
            changed: None,
            articles: 0,
            random: Random::new(recipe.seed, "desk"),
            language: recipe.language,
        };
        desk.add_customer();
        desk
    }

    fn add_customer(&mut self) {
        let random = &mut self.random;
        let mut orders = Vec::new();
        for _ in 0..random.count(2, 5) {
            orders.push(self.orders.len());
            let id = format!("ord-{}", random.digits(8));
            let english = random.pick(&HELP_DESK.items);
            self.orders.push(Order {
                id,
                item: self.language.say(english),
                english,
                quantity: random.between(1, 6),
                cents: random.between(900, 240_000),
                refunded: 0,
                state: random.pick(&HELP_DESK.states[..4]),
                carrier: random.pick(&HELP_DESK.carriers),
                parcel: format!("prc{}", random.hex(10)),
            });
        }
        self.current = self.customers.len();
        self.customers.push(Customer {
            id: format!("cus-{}", random.word(ID, 9)),
            since: random.between(2_009, 2_025),
            orders,
            notes: Vec::new(),
        });
    }

    fn customer(&self) -> &Customer {
        &self.customers[self.current]
    }

    /// One of the customer's orders; mostly one that was not looked at.
    fn order(&self, random: &mut Random) -> usize {
        let orders = &self.customer().orders;
        let mut at = random.pick(orders);
        if self.visited.contains(&at) && random.percent(60) {
            at = random.pick(orders);
        }
        at
    }

    fn run(&mut self, random: &mut Random, intent: Intent, size: usize, now: i64) -> Action {
        match intent {
            Intent::Find => self.find(),
            Intent::List => self.list(),
            Intent::Look => self.look(random, size, now),
            Intent::Policy => self.policy(random, size),
            Intent::Change => self.change(random),
            Intent::Refund => self.refund(random),
            Intent::Note => self.note(random),
            Intent::Write => self.write(random),
            // And work in a repository, which no weights of a help desk have.
            _ => self.history(random, size, now),
        }
    }

    fn find(&self) -> Action {
        let customer = self.customer();
        let output = json!({
            "customer": customer.id,
            "since": customer.since,
            "orders": customer.orders.len(),
            "notes": customer.notes,
        });
        let input = json!({"customer": customer.id});
        Action::new("find_customer", input, output.to_string())
    }

    fn list(&self) -> Action {
        let customer = self.customer();
        let rows = customer.orders.iter().map(|at| {
            let Order {
                id,
                item,
                state,
                cents,
                ..
            } = &self.orders[*at];
            format!("{id}  {item:<18} {:>9}  {state}", money(*cents))
        });
        let output = rows.collect::<Vec<_>>().join("\n");
        Action::new("list_orders", json!({"customer": customer.id}), output)
    }

    /// Adds lines up to so many bytes, counted as those of the English session, so that its
    /// translation shows as many lines.
    fn lengthen(
        &self,
        lines: &mut Vec<String>,
        mut length: usize,
        size: usize,
        mut line: impl FnMut() -> (String, &'static str, Vec<(&'static str, String)>),
    ) {
        while length < size {
            let (before, template, slots) = line();
            let slots: Vec<(&str, &str)> = slots.iter().map(|(name, it)| (*name, &**it)).collect();
            length += before.len() + fill(template, &slots).len() + 1;
            lines.push(before + &self.language.fill(template, &slots));
        }
    }

    fn look(&mut self, random: &mut Random, size: usize, now: i64) -> Action {
        // What was changed is looked at once more.
        let at = match self.changed.take() {
            Some(at) if random.percent(70) => at,
            _ => self.order(random),
        };
        self.visited.push(at);
        let order = &self.orders[at];
        let mut lines = vec![order.value().to_string()];
        let length = lines[0].len() - order.item.len() + order.english.len();
        let mut time = now;
        self.lengthen(&mut lines, length, size, || {
            time -= i64::try_from(random.between(60_000, 9_000_000)).unwrap_or(60_000);
            let (template, slots) = event(random, order.carrier);
            (format!("{} ", clock(time)), template, slots)
        });
        Action::new("get_order", json!({"order": order.id}), lines.join("\n"))
    }

    fn policy(&mut self, random: &mut Random, size: usize) -> Action {
        self.articles += 1;
        let subject = random.pick(&HELP_DESK.subjects);
        let heading = format!("Article {}: ", self.articles);
        let length = heading.len() + subject.len();
        let said = self.language.say(subject);
        let mut lines = vec![format!("{heading}{said}")];
        self.lengthen(&mut lines, length, size, || {
            let slots = vec![
                ("number", random.between(1, 99).to_string()),
                ("days", random.between(3, 90).to_string()),
                ("subject", subject.to_owned()),
            ];
            (String::new(), random.pick(&HELP_DESK.clauses), slots)
        });
        Action::new("read_policy", json!({"subject": said}), lines.join("\n"))
    }

    fn change(&mut self, random: &mut Random) -> Action {
        let at = self.order(random);
        let state = random.pick(&HELP_DESK.states);
        self.changed = Some(at);
        let order = &mut self.orders[at];
        let before = std::mem::replace(&mut order.state, state);
        let output = format!("{}: {before} is now {state}", order.id);
        let input = json!({"order": order.id, "status": state});
        Action::new("change_order", input, output)
    }

    fn refund(&mut self, random: &mut Random) -> Action {
        let at = self.order(random);
        let order = &mut self.orders[at];
        let left = order.cents - order.refunded;
        let cents = random.between(1, left.max(1)).min(left);
        order.refunded += cents;
        let [amount, refunded, total] = [cents, order.refunded, order.cents].map(money);
        let output = format!(
            "{}: {amount} refunded, {refunded} of {total} in all",
            order.id
        );
        Action::new(
            "issue_refund",
            json!({"order": order.id, "amount": amount}),
            output,
        )
    }

    fn history(&self, random: &mut Random, size: usize, now: i64) -> Action {
        let customer = self.customer();
        let mut lines = Vec::new();
        let mut time = now;
        self.lengthen(&mut lines, 0, size, || {
            time -= i64::try_from(random.between(600_000, 90_000_000)).unwrap_or(600_000);
            let order = &self.orders[random.pick(&customer.orders)];
            let (template, slots) = event(random, order.carrier);
            (format!("{} {}: ", clock(time), order.id), template, slots)
        });
        Action::new(
            "read_history",
            json!({"customer": customer.id}),
            lines.join("\n"),
        )
    }

    fn note(&mut self, random: &mut Random) -> Action {
        let topic = self.topic(random);
        let note = said(random, &topic, &HELP_DESK.notes);
        let customer = &mut self.customers[self.current];
        customer.notes.push(note.clone());
        if customer.notes.len() > 6 {
            customer.notes.remove(0);
        }
        let output = format!(
            "{} notes are kept for {}",
            customer.notes.len(),
            customer.id
        );
        Action::new(
            "add_note",
            json!({"customer": customer.id, "note": note}),
            output,
        )
    }

    fn write(&self, random: &mut Random) -> Action {
        let topic = self.topic(random);
        let letter = sentences(random, &topic, 2, &[&HELP_DESK.letters]);
        let output = format!("sent to {}, {} characters", topic.symbol, letter.len());
        Action::new(
            "send_message",
            json!({"customer": topic.symbol, "text": letter}),
            output,
        )
    }
}

/// What happened to a parcel.
fn event(random: &mut Random, carrier: &str) -> (&'static str, Vec<(&'static str, String)>) {
    let number = random.between(2, 9_999).to_string();
    let slots = vec![("carrier", carrier.to_owned()), ("number", number)];
    (random.pick(&HELP_DESK.events), slots)
}

impl Workspace for HelpDesk {
    /// The next customer; at times one who was here before.
    fn turn(&mut self, random: &mut Random) -> Option<Topic> {
        if self.customers.len() > 2 && random.percent(20) {
            self.current = random.index(self.customers.len());
        } else if !self.visited.is_empty() {
            self.add_customer();
        }
        None
    }

    fn topic(&self, random: &mut Random) -> Topic {
        let customer = self.customer();
        let order = &self.orders[random.pick(&customer.orders)];
        let other = &self.orders[random.pick(&customer.orders)];
        let earlier = self.visited.get(random.index(self.visited.len()));
        Topic {
            language: self.language,
            noun: order.item,
            path: order.id.clone(),
            symbol: customer.id.clone(),
            elsewhere: other.id.clone(),
            earlier: earlier.map_or_else(String::new, |at| self.orders[*at].id.clone()),
        }
    }

    fn place(&self, _: &mut Random) -> Place {
        let customer = self.customer();
        let order = &self.orders[customer.orders[0]];
        Place {
            noun: order.item,
            path: order.id.clone(),
            symbol: customer.id.clone(),
            language: &CODE.languages[0],
        }
    }

    /// One look-up or several, or one change.
    fn round(
        &mut self,
        random: &mut Random,
        choice: Choice<'_>,
        now: i64,
        limits: Limits,
    ) -> Round {
        let size = limits.size(random.size(&SIZES.help_desk_results));
        let intent = |random: &mut Random| match choice {
            Choice::Weighted(weights) if limits.scale_percent <= 100 => {
                random.weighted_key(weights)
            }
            _ => LONG[random.weighted(&LONG.map(|(_, weight)| weight))].0,
        };
        let first = intent(random);
        let mut actions = vec![self.run(random, first, size, now)];
        // Look-ups do not depend on each other.
        let is_read = |it| !matches!(it, Intent::Change | Intent::Refund | Intent::Write);
        for _ in 0..random.weighted(&[78, 16, 6]) {
            let next = intent(random);
            if is_read(first) && is_read(next) {
                actions.push(self.run(random, next, size / 2, now));
            }
        }
        let topic = self.topic(random);
        let openings: &[&str] = HELP_DESK.intents.get(&first).map_or(&[], Vec::as_slice);
        let (findings, thoughts) = (&HELP_DESK.findings[..], &HELP_DESK.thoughts[..]);
        let mut text = said(random, &topic, openings);
        if random.percent(40) {
            let finding = said(random, &topic, findings);
            text = format!("{finding}{}{text}", topic.language.gap());
        }
        let explanations = limits.talk.explanations(random, 30, 4);
        let thinks = limits.talk.thinks(random, 45);
        for _ in 0..explanations {
            let count = random.count(3, 6);
            let explanation = sentences(random, &topic, count, &[findings, thoughts]);
            text = format!("{explanation}\n\n{text}");
        }
        let thought = thinks.then(|| {
            let count = random.count(2, 5);
            sentences(random, &topic, count, &[thoughts])
        });
        Round {
            thought,
            text,
            actions,
        }
    }

    /// The look-up whose result says a planted fact, among others of its kind.
    fn reveal(&mut self, random: &mut Random, fact: &Planned, now: i64, _: Limits) -> Action {
        let pairs = facts::shuffled(random, fact);
        let usual = usize::try_from(random.usual_percent()).unwrap_or(100);
        let size = random.count(150, 700) * usual / 100;
        let (mut shown, is_prose) = match fact.channel {
            Channel::Config | Channel::Log | Channel::Failure => {
                (self.history(random, size, now), false)
            }
            Channel::Comment => (self.look(random, size, now), false),
            Channel::User | Channel::Runbook => (self.policy(random, size), true),
        };
        let say = if is_prose { facts::said } else { facts::logged };
        let said = pairs.iter().map(|pair| say(random, pair));
        for line in fact.line.clone().into_iter().chain(said) {
            shown.output.push('\n');
            shown.output.push_str(&line);
        }
        shown
    }

    /// A history, with this line on top.
    fn settings(&self, random: &mut Random, spot: &Spot, line: String) -> Action {
        let mut shown = self.history(random, 300, spot.now);
        shown.output = format!("{line}\n{}", shown.output);
        shown
    }

    fn count(&self, random: &mut Random, _: &Spot, line: String) -> Action {
        let subject = self.language.say(random.pick(&HELP_DESK.subjects));
        Action::new("count_cases", json!({"subject": subject}), line)
    }

    /// A change that is refused.
    fn failure(&self, random: &mut Random, _: &Spot) -> Action {
        let order = &self.orders[self.order(random)].id;
        let input = json!({"order": order, "status": random.pick(&HELP_DESK.states)});
        let output = format!("{order}: nothing was changed");
        Action {
            failed: true,
            ..Action::new("change_order", input, output)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_stays_changed() {
        let mut random = Random::new(5, "test");
        let mut desk = HelpDesk::new(&Recipe::default());
        for _ in 0..40 {
            let changed = desk.change(&mut random);
            let (order, state) = (&changed.input["order"], &changed.input["status"]);
            let refunded = desk.refund(&mut random);
            let mut orders = desk.orders.iter();
            let found = orders.find(|it| *order == it.id).expect("the order");
            assert_eq!(*state, found.state);
            assert!(found.refunded <= found.cents);
            assert!(refunded.output.contains("refunded"));
            desk.turn(&mut random);
        }
    }
}
