//! The simulated help desk: customers and orders, and what looking them up and changing them shows.
//!
//! Many short results instead of few long ones, and ids instead of paths. What was changed stays
//! changed: a later look at the same order shows it.

use serde_json::{Value, json};

use super::Language as Spoken;
use super::code_review::act::{Action, Round};
use super::code_review::profile::{Limits, Talk};
use super::facts::{self, Channel, Planned};
use super::grammar::output::{Place, clock};
use super::grammar::prose::Topic;
use super::grammar::source::Language;
use super::plot::{Site, Spot};
use super::random::{Quantiles, Random};
use super::tools::Tool;

mod prose;

use prose::{CARRIERS, ITEMS, STATES};

/// Sizes of results in bytes: short, with a few long histories.
const RESULT_SIZES: &Quantiles = &[
    (0, 200),
    (25_000, 320),
    (50_000, 520),
    (75_000, 900),
    (90_000, 1_700),
    (98_000, 4_000),
    (99_800, 9_000),
    (100_000, 24_000),
];

/// What the agent does, with the weights of a story's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    Find,
    List,
    Look,
    Policy,
    Change,
    Refund,
    History,
    Note,
    Write,
}

const ERRANDS: [Errand; 9] = [
    Errand::Find,
    Errand::List,
    Errand::Look,
    Errand::Policy,
    Errand::Change,
    Errand::Refund,
    Errand::History,
    Errand::Note,
    Errand::Write,
];

/// Look-ups that can be long, for rounds that must show much.
const LONG: [u64; 9] = [0, 0, 4, 3, 0, 0, 3, 0, 0];

/// Customers, their orders, and the case that is open.
#[derive(Debug)]
pub(super) struct Desk {
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
    language: Spoken,
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

fn action(tool: Tool, input: Value, output: String) -> Action {
    Action {
        tool,
        input,
        output,
        failed: false,
    }
}

impl Desk {
    pub(super) fn new(seed: u64, language: Spoken) -> Self {
        let mut desk = Self {
            customers: Vec::new(),
            orders: Vec::new(),
            current: 0,
            visited: Vec::new(),
            changed: None,
            articles: 0,
            random: Random::new(seed, "desk"),
            language,
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
            let english = random.pick(ITEMS);
            self.orders.push(Order {
                id,
                item: self.language.say(english),
                english,
                quantity: random.between(1, 6),
                cents: random.between(900, 240_000),
                refunded: 0,
                state: random.pick(&STATES[..4]),
                carrier: random.pick(CARRIERS),
                parcel: format!("prc{}", random.hex(10)),
            });
        }
        self.current = self.customers.len();
        self.customers.push(Customer {
            id: format!("cus-{}", random.word(b"23456789abcdefghjkmnpqrstuvwxyz", 9)),
            since: random.between(2_009, 2_025),
            orders,
            notes: Vec::new(),
        });
    }

    /// The next customer; at times one who was here before.
    pub(super) fn turn(&mut self, random: &mut Random) {
        if self.customers.len() > 2 && random.percent(20) {
            self.current = random.index(self.customers.len());
        } else if !self.visited.is_empty() {
            self.add_customer();
        }
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

    /// One round of work: one look-up or several, or one change.
    pub(super) fn round(
        &mut self,
        random: &mut Random,
        weights: &[u64; 9],
        now: i64,
        limits: Limits,
    ) -> Round {
        let drawn = random.size(RESULT_SIZES) * limits.scale_percent / 100;
        let size = usize::try_from(drawn.min(limits.most)).unwrap_or(500);
        let weights = if limits.scale_percent > 100 {
            &LONG
        } else {
            weights
        };
        let errand = ERRANDS[random.weighted(weights)];
        let mut actions = vec![self.run(random, errand, size, now)];
        // Look-ups do not depend on each other.
        let is_read = |errand| !matches!(errand, Errand::Change | Errand::Refund | Errand::Write);
        for _ in 0..random.weighted(&[78, 16, 6]) {
            let next = ERRANDS[random.weighted(weights)];
            if is_read(errand) && is_read(next) {
                actions.push(self.run(random, next, size / 2, now));
            }
        }
        let topic = self.topic(random);
        let mut text = prose::announcement(random, &topic, errand);
        let (explanations, thinks) = match limits.talk {
            Talk::AsItComes => (usize::from(random.percent(30)), random.percent(45)),
            Talk::Little => (0, false),
            Talk::Much => (4, true),
        };
        for _ in 0..explanations {
            text = format!("{}\n\n{text}", prose::explanation(random, &topic));
        }
        Round {
            thought: thinks.then(|| prose::thought(random, &topic)),
            text,
            actions,
        }
    }

    fn run(&mut self, random: &mut Random, errand: Errand, size: usize, now: i64) -> Action {
        match errand {
            Errand::Find => self.find(),
            Errand::List => self.list(),
            Errand::Look => self.look(random, size, now),
            Errand::Policy => self.policy(random, size),
            Errand::Change => self.change(random),
            Errand::Refund => self.refund(random),
            Errand::History => self.history(random, size, now),
            Errand::Note => self.note(random),
            Errand::Write => self.write(random),
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
        action(Tool::FindCustomer, input, output.to_string())
    }

    fn list(&self) -> Action {
        let customer = self.customer();
        let rows = customer.orders.iter().map(|at| {
            let order = &self.orders[*at];
            let total = money(order.cents);
            format!(
                "{}  {:<18} {total:>9}  {}",
                order.id, order.item, order.state
            )
        });
        let output = rows.collect::<Vec<_>>().join("\n");
        action(Tool::ListOrders, json!({"customer": customer.id}), output)
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
        // Sizes are those of the English session: its translation shows as many lines.
        let mut length = lines[0].len() - order.item.len() + order.english.len();
        let mut time = now;
        while length < size {
            time -= i64::try_from(random.between(60_000, 9_000_000)).unwrap_or(60_000);
            let (event, size) = prose::event(random, order.carrier, self.language);
            let line = format!("{} {event}", clock(time));
            length += line.len() - event.len() + size + 1;
            lines.push(line);
        }
        action(Tool::GetOrder, json!({"order": order.id}), lines.join("\n"))
    }

    fn policy(&mut self, random: &mut Random, size: usize) -> Action {
        self.articles += 1;
        let subject = random.pick(prose::SUBJECTS);
        let heading = format!("Article {}: ", self.articles);
        let mut length = heading.len() + subject.len();
        let said = self.language.say(subject);
        let mut lines = vec![format!("{heading}{said}")];
        while length < size {
            let (line, size) = prose::clause(random, subject, self.language);
            length += size + 1;
            lines.push(line);
        }
        let input = json!({"subject": said});
        action(Tool::ReadPolicy, input, lines.join("\n"))
    }

    fn change(&mut self, random: &mut Random) -> Action {
        let at = self.order(random);
        let state = random.pick(STATES);
        self.changed = Some(at);
        let order = &mut self.orders[at];
        let before = std::mem::replace(&mut order.state, state);
        action(
            Tool::ChangeOrder,
            json!({"order": order.id, "status": state}),
            format!("{}: {before} is now {state}", order.id),
        )
    }

    fn refund(&mut self, random: &mut Random) -> Action {
        let at = self.order(random);
        let order = &mut self.orders[at];
        let left = order.cents - order.refunded;
        let cents = random.between(1, left.max(1)).min(left);
        order.refunded += cents;
        let input = json!({"order": order.id, "amount": money(cents)});
        let output = format!(
            "{}: {} refunded, {} of {} in all",
            order.id,
            money(cents),
            money(order.refunded),
            money(order.cents)
        );
        action(Tool::IssueRefund, input, output)
    }

    fn history(&self, random: &mut Random, size: usize, now: i64) -> Action {
        let customer = self.customer();
        let mut lines = Vec::new();
        let mut length = 0;
        let mut time = now;
        while length < size {
            time -= i64::try_from(random.between(600_000, 90_000_000)).unwrap_or(600_000);
            let order = &self.orders[random.pick(&customer.orders)];
            let (event, size) = prose::event(random, order.carrier, self.language);
            let line = format!("{} {}: {event}", clock(time), order.id);
            length += line.len() - event.len() + size + 1;
            lines.push(line);
        }
        let input = json!({"customer": customer.id});
        action(Tool::ReadHistory, input, lines.join("\n"))
    }

    fn note(&mut self, random: &mut Random) -> Action {
        let topic = self.topic(random);
        let note = prose::note(random, &topic);
        let customer = &mut self.customers[self.current];
        customer.notes.push(note.clone());
        if customer.notes.len() > 6 {
            customer.notes.remove(0);
        }
        action(
            Tool::AddNote,
            json!({"customer": customer.id, "note": note}),
            format!(
                "{} notes are kept for {}",
                customer.notes.len(),
                customer.id
            ),
        )
    }

    fn write(&self, random: &mut Random) -> Action {
        let topic = self.topic(random);
        let letter = prose::letter(random, &topic);
        let input = json!({"customer": topic.symbol, "text": letter});
        let output = format!("sent to {}, {} characters", topic.symbol, letter.len());
        action(Tool::SendMessage, input, output)
    }

    /// The look-up whose result says a planted fact, among others of its kind.
    pub(super) fn reveal(&mut self, random: &mut Random, fact: &Planned, now: i64) -> Action {
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
        if let Some(line) = fact.statement() {
            shown.output.push('\n');
            shown.output.push_str(line);
        }
        for pair in &pairs {
            let said = if is_prose {
                facts::said(random, pair)
            } else {
                facts::logged(random, pair)
            };
            shown.output.push('\n');
            shown.output.push_str(&said);
        }
        shown
    }
}

impl Site for Desk {
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

    fn here(&self, _: &mut Random) -> Place {
        let customer = self.customer();
        let order = &self.orders[customer.orders[0]];
        Place {
            noun: order.item,
            path: order.id.clone(),
            symbol: customer.id.clone(),
            language: Language::Rust,
        }
    }

    /// A history, with this line on top.
    fn settings(&self, random: &mut Random, spot: &Spot, line: String) -> Action {
        let mut shown = self.history(random, 300, spot.now);
        shown.output = format!("{line}\n{}", shown.output);
        shown
    }

    fn count(&self, random: &mut Random, _: &Spot, line: String) -> Action {
        let subject = random.pick(prose::SUBJECTS);
        let subject = self.language.say(subject);
        action(Tool::CountCases, json!({"subject": subject}), line)
    }

    /// A change that is refused.
    fn failure(&self, random: &mut Random, _: &Spot) -> Action {
        let at = self.order(random);
        let order = &self.orders[at];
        Action {
            tool: Tool::ChangeOrder,
            input: json!({"order": order.id, "status": random.pick(STATES)}),
            output: format!("{}: nothing was changed", order.id),
            failed: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_stays_changed() {
        let mut random = Random::new(5, "test");
        let mut desk = Desk::new(5, Spoken::English);
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
