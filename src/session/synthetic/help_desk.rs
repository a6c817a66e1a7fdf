//! The simulated help desk: customers and orders, and what looking them up and changing them shows.
//!
//! Many short results instead of few long ones, and ids instead of paths. An order that was changed
//! stays changed: a later look at it shows the change.

use serde_json::{Value, json};

use super::facts::{Channel, Planned, Ways};
use super::grammar::{WORDS, fill};
use super::output::{Place, clock};
use super::prose::Topic;
use super::random::Random;
use super::words::SIZES;
use super::workspace::{Action, Choice, Intent, Limits, Moment, Round, Workspace, WorkspaceKind};
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
    ways: Ways,
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
    /// In English.
    item: &'static str,
    quantity: u64,
    cents: u64,
    refunded: u64,
    state: &'static str,
    carrier: &'static str,
    parcel: String,
}

impl Order {
    fn value(&self, language: Language) -> Value {
        json!({
            "order": self.id,
            "item": language.say(self.item),
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

/// The lines of a long result. Their length is that of the English ones, so that a translation shows
/// as many lines.
struct Page {
    language: Language,
    lines: Vec<String>,
    length: usize,
}

impl Page {
    /// A page of a language, without lines or with a first one: as it is, and its English length.
    fn new(language: Language, first: Option<(String, usize)>) -> Self {
        let length = first.as_ref().map_or(0, |(_, length)| *length);
        Self {
            language,
            lines: first.into_iter().map(|(line, _)| line).collect(),
            length,
        }
    }

    fn add(&mut self, before: &str, template: &str, slots: &[(&str, &str)]) {
        self.length += before.len() + fill(template, slots).len() + 1;
        let line = self.language.fill(template, slots);
        self.lines.push(format!("{before}{line}"));
    }

    /// Adds something that happened to a parcel.
    fn add_event(&mut self, random: &mut Random, before: &str, carrier: &str) {
        let number = random.between(2, 9_999).to_string();
        let slots = [("carrier", carrier), ("number", number.as_str())];
        self.add(before, WORDS.pick(random, "desk.events"), &slots);
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }
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
            ways: Ways::of(recipe),
        };
        desk.add_customer();
        desk
    }

    fn add_customer(&mut self) {
        let random = &mut self.random;
        let mut orders = Vec::new();
        for _ in 0..random.count(2, 5) {
            orders.push(self.orders.len());
            self.orders.push(Order {
                id: WORDS.say(random, "desk.order", &[]),
                item: WORDS.pick(random, "desk.items"),
                quantity: random.between(1, 6),
                cents: random.between(900, 240_000),
                refunded: 0,
                state: random.pick(&WORDS.bank("desk.states")[..4]),
                carrier: WORDS.pick(random, "desk.carriers"),
                parcel: WORDS.say(random, "desk.parcel", &[]),
            });
        }
        self.current = self.customers.len();
        self.customers.push(Customer {
            id: WORDS.say(random, "desk.customer", &[]),
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
        let customer = self.customer().id.clone();
        let by_customer = json!({"customer": customer});
        match intent {
            Intent::Find => {
                let Customer {
                    since,
                    orders,
                    notes,
                    ..
                } = self.customer();
                let found = json!({
                    "customer": customer,
                    "since": since,
                    "orders": orders.len(),
                    "notes": notes,
                });
                Action::new("find_customer", by_customer, found.to_string())
            }
            Intent::List => {
                let orders = self.customer().orders.iter().map(|at| &self.orders[*at]);
                let rows = orders.map(|order| {
                    let item = self.ways.language.say(order.item);
                    let (id, total, state) = (&order.id, money(order.cents), order.state);
                    format!("{id}  {item:<18} {total:>9}  {state}")
                });
                let rows: Vec<String> = rows.collect();
                Action::new("list_orders", by_customer, rows.join("\n"))
            }
            Intent::Look => self.look(random, size, now),
            Intent::Policy => self.policy(random, size),
            Intent::Change => self.change(random),
            Intent::Refund => self.refund(random),
            Intent::Note => {
                let topic = self.topic(random);
                let note = topic.say(random, &[WORDS.bank("desk.notes")]);
                let notes = &mut self.customers[self.current].notes;
                notes.push(note.clone());
                if notes.len() > 6 {
                    notes.remove(0);
                }
                let output = format!("{} notes are kept for {customer}", notes.len());
                let input = json!({"customer": customer, "note": note});
                Action::new("add_note", input, output)
            }
            Intent::Write => {
                let letter = self
                    .topic(random)
                    .say(random, &[WORDS.bank("desk.letters"); 2]);
                let output = format!("sent to {customer}, {} characters", letter.len());
                let input = json!({"customer": customer, "text": letter});
                Action::new("send_message", input, output)
            }
            // And work in a repository, which no weights of a help desk have.
            _ => self.history(random, size, now),
        }
    }

    fn look(&mut self, random: &mut Random, size: usize, now: i64) -> Action {
        // An order that was changed is looked at once more.
        let at = match self.changed.take() {
            Some(at) if random.percent(70) => at,
            _ => self.order(random),
        };
        self.visited.push(at);
        let (order, language) = (&self.orders[at], self.ways.language);
        let first = order.value(language).to_string();
        let length = order.value(Language::English).to_string().len();
        let mut page = Page::new(language, Some((first, length)));
        let mut time = now;
        while page.length < size {
            time -= random.milliseconds(60_000, 9_000_000);
            page.add_event(random, &format!("{} ", clock(time)), order.carrier);
        }
        Action::new("get_order", json!({"order": order.id}), page.text())
    }

    fn policy(&mut self, random: &mut Random, size: usize) -> Action {
        self.articles += 1;
        let subject = WORDS.pick(random, "desk.subjects");
        let said = self.ways.language.say(subject);
        let article = |subject: &str| format!("Article {}: {subject}", self.articles);
        let first = (article(said), article(subject).len());
        let mut page = Page::new(self.ways.language, Some(first));
        while page.length < size {
            let [number, days] =
                [(1, 99), (3, 90)].map(|(low, high)| random.between(low, high).to_string());
            let slots = [
                ("number", number.as_str()),
                ("days", &days),
                ("subject", subject),
            ];
            page.add("", WORDS.pick(random, "desk.clauses"), &slots);
        }
        Action::new("read_policy", json!({"subject": said}), page.text())
    }

    fn change(&mut self, random: &mut Random) -> Action {
        let at = self.order(random);
        let state = WORDS.pick(random, "desk.states");
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
        let id = &order.id;
        let output = format!("{id}: {amount} refunded, {refunded} of {total} in all");
        let input = json!({"order": id, "amount": amount});
        Action::new("issue_refund", input, output)
    }

    fn history(&self, random: &mut Random, size: usize, now: i64) -> Action {
        let customer = self.customer();
        let mut page = Page::new(self.ways.language, None);
        let mut time = now;
        while page.length < size {
            time -= random.milliseconds(600_000, 90_000_000);
            let order = &self.orders[random.pick(&customer.orders)];
            let before = format!("{} {}: ", clock(time), order.id);
            page.add_event(random, &before, order.carrier);
        }
        Action::new(
            "read_history",
            json!({"customer": customer.id}),
            page.text(),
        )
    }
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
        let [order, other] = [(); 2].map(|()| &self.orders[random.pick(&customer.orders)]);
        let earlier = self.visited.get(random.index(self.visited.len()));
        Topic {
            workspace: WorkspaceKind::HelpDesk,
            language: self.ways.language,
            noun: self.ways.language.say(order.item),
            path: order.id.clone(),
            symbol: customer.id.clone(),
            elsewhere: other.id.clone(),
            earlier: earlier.map_or_else(String::new, |at| self.orders[*at].id.clone()),
        }
    }

    /// There is no code that output could name.
    fn place(&self, _: &mut Random) -> Place {
        Place::default()
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
        let [findings, thoughts] = ["desk.findings", "desk.thoughts"].map(|it| WORDS.bank(it));
        let mut text = topic.say(random, &[topic.opening(first)]);
        if random.percent(40) {
            let finding = topic.say(random, &[findings]);
            text = format!("{finding}{}{text}", topic.language.gap());
        }
        let explanations = limits.talk.explanations(random, 30, 4);
        let thinks = limits.talk.thinks(random, 45);
        for _ in 0..explanations {
            let banks = [findings, thoughts].repeat(3);
            let count = random.count(3, 6);
            let explanation = topic.say(random, &banks[..count]);
            text = format!("{explanation}\n\n{text}");
        }
        let thought = thinks.then(|| {
            let banks = vec![thoughts; random.count(2, 5)];
            topic.say(random, &banks)
        });
        Round {
            thought,
            text,
            actions,
        }
    }

    /// The look-up whose result says a planted fact, among others of its kind.
    fn reveal(&mut self, random: &mut Random, fact: &Planned, now: i64, _: Limits) -> Action {
        let content = fact.content.shuffled(random);
        let usual = usize::try_from(random.usual_percent()).unwrap_or(100);
        let size = random.count(150, 700) * usual / 100;
        let (mut shown, rule) = match fact.channel {
            Channel::Config | Channel::Log | Channel::Failure => {
                (self.history(random, size, now), "logged")
            }
            Channel::Comment => (self.look(random, size, now), "logged"),
            Channel::User | Channel::Runbook => (self.policy(random, size), "said"),
        };
        for line in content.lines(random, self.ways, rule) {
            shown.output.push('\n');
            shown.output.push_str(&line);
        }
        shown
    }

    /// A history, with this line on top.
    fn settings(&self, random: &mut Random, _: &Place, moment: Moment, line: String) -> Action {
        let mut shown = self.history(random, 300, moment.now);
        shown.output = format!("{line}\n{}", shown.output);
        shown
    }

    fn count(&self, random: &mut Random, _: &Place, _: Moment, line: String) -> Action {
        let subject = WORDS.pick(random, "desk.subjects");
        let subject = self.ways.language.say(subject);
        Action::new("count_cases", json!({"subject": subject}), line)
    }

    /// A change that is refused.
    fn failure(&self, random: &mut Random, _: &Place, _: Moment) -> Action {
        let order = &self.orders[self.order(random)].id;
        let input = json!({"order": order, "status": WORDS.pick(random, "desk.states")});
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
    fn a_change_stays() {
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
