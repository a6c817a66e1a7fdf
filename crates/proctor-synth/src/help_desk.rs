//! The simulated help desk: customers and orders, and what looking them up and changing them shows.
//!
//! Many short results instead of few long ones, and ids instead of paths. An order that was changed
//! stays changed: a later look at it shows the change.

use serde_json::{Value, json};

use super::facts::{Channel, Content, Ways};
use super::grammar::{bank, fill};
use super::output::clock;
use super::prose::Topic;
use super::random::{Random, whole};
use super::words::SIZES;
use super::workspace::{Action, Intent, Round, WorkChoice, WorkMoment, Workspace, WorkspaceKind};
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
    random: Random,
    /// Draws what exists, apart from what is done with it.
    stock: Random,
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
    text: String,
    length: usize,
}

impl Page {
    /// A page with a first line: as it is, and its English length.
    fn new(language: Language, text: String, length: usize) -> Self {
        Self { language, text, length }
    }

    fn add(&mut self, before: &str, template: &str, slots: &[(&str, &str)]) {
        self.length += before.len() + fill(template, slots).len() + 1;
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text += &[gap, before, &self.language.fill(template, slots)].concat();
    }

    /// Adds something that happened to a parcel.
    fn add_event(&mut self, random: &Random, before: &str, carrier: &str) {
        let number = random.between(2, 9_999).to_string();
        let slots = [("carrier", carrier), ("number", &number)];
        self.add(before, random.word("desk.events"), &slots);
    }
}

impl HelpDesk {
    pub(crate) fn new(recipe: &Recipe, random: &Random) -> Self {
        let mut help_desk = Self {
            customers: Vec::new(),
            orders: Vec::new(),
            current: 0,
            visited: Vec::new(),
            changed: None,
            articles: 0,
            random: random.clone(),
            stock: Random::new(recipe.seed, "desk"),
            ways: Ways::of(recipe),
        };
        help_desk.add_customer();
        help_desk
    }

    fn add_customer(&mut self) {
        let random = &self.stock;
        let mut orders = Vec::new();
        for _ in 0..random.count(2, 5) {
            orders.push(self.orders.len());
            self.orders.push(Order {
                id: random.draw("desk.order"),
                item: random.word("desk.items"),
                quantity: random.between(1, 6),
                cents: random.between(900, 240_000),
                refunded: 0,
                state: random.pick(&bank("desk.states")[..4]),
                carrier: random.word("desk.carriers"),
                parcel: random.draw("desk.parcel"),
            });
        }
        self.current = self.customers.len();
        self.customers.push(Customer {
            id: random.draw("desk.customer"),
            since: random.between(2_009, 2_025),
            orders,
            notes: Vec::new(),
        });
    }

    fn customer(&self) -> &Customer {
        &self.customers[self.current]
    }

    /// One of the customer's orders; mostly one that was not looked at.
    fn order(&self) -> usize {
        let orders = &self.customer().orders;
        let mut at = self.random.pick(orders);
        if self.visited.contains(&at) && self.random.percent(60) {
            at = self.random.pick(orders);
        }
        at
    }

    fn run(&mut self, intent: Intent, size: usize, now: i64) -> Action {
        let customer = self.customer();
        let id = &customer.id;
        let by_customer = json!({"customer": id});
        match intent {
            Intent::Find => {
                let found = json!({
                    "customer": id,
                    "since": customer.since,
                    "orders": customer.orders.len(),
                    "notes": customer.notes,
                });
                Action::new("find_customer", by_customer, found.to_string())
            }
            Intent::List => {
                let rows = customer.orders.iter().map(|at| &self.orders[*at]).map(|order| {
                    let item = self.ways.language.say(order.item);
                    let (id, total, state) = (&order.id, money(order.cents), order.state);
                    format!("{id}  {item:<18} {total:>9}  {state}")
                });
                let rows: Vec<String> = rows.collect();
                Action::new("list_orders", by_customer, rows.join("\n"))
            }
            Intent::Look => self.look(size, now),
            Intent::Policy => self.policy(size),
            Intent::Change => self.change(),
            Intent::Refund => self.refund(),
            Intent::Note => {
                let note = self.topic().say(&[bank("desk.notes")]);
                let input = json!({"customer": id, "note": note});
                let Customer { id, notes, .. } = &mut self.customers[self.current];
                notes.push(note);
                if notes.len() > 6 {
                    notes.remove(0);
                }
                let output = format!("{} notes are kept for {id}", notes.len());
                Action::new("add_note", input, output)
            }
            Intent::Write => {
                let letter = self.topic().say(&[bank("desk.letters"); 2]);
                let output = format!("sent to {id}, {} characters", letter.len());
                let input = json!({"customer": id, "text": letter});
                Action::new("send_message", input, output)
            }
            // And work in a repository, which no weights of a help desk have.
            _ => self.history(size, now),
        }
    }

    fn look(&mut self, size: usize, now: i64) -> Action {
        // An order that was changed is looked at once more.
        let at = match self.changed.take() {
            Some(at) if self.random.percent(70) => at,
            _ => self.order(),
        };
        self.visited.push(at);
        let (order, language) = (&self.orders[at], self.ways.language);
        let length = order.value(Language::English).to_string().len();
        let mut page = Page::new(language, order.value(language).to_string(), length);
        let mut time = now;
        while page.length < size {
            time -= self.random.milliseconds(60_000, 9_000_000);
            page.add_event(&self.random, &format!("{} ", clock(time)), order.carrier);
        }
        Action::new("get_order", json!({"order": order.id}), page.text)
    }

    fn policy(&mut self, size: usize) -> Action {
        self.articles += 1;
        let subject = self.random.word("desk.subjects");
        let said = self.ways.language.say(subject);
        let article = |subject: &str| format!("Article {}: {subject}", self.articles);
        let mut page = Page::new(self.ways.language, article(said), article(subject).len());
        while page.length < size {
            let number = self.random.between(1, 99).to_string();
            let days = self.random.between(3, 90).to_string();
            let slots = [("number", &*number), ("days", &days), ("subject", subject)];
            page.add("", self.random.word("desk.clauses"), &slots);
        }
        Action::new("read_policy", json!({"subject": said}), page.text)
    }

    fn change(&mut self) -> Action {
        let at = self.order();
        let state = self.random.word("desk.states");
        self.changed = Some(at);
        let order = &mut self.orders[at];
        let before = std::mem::replace(&mut order.state, state);
        let output = format!("{}: {before} is now {state}", order.id);
        let input = json!({"order": order.id, "status": state});
        Action::new("change_order", input, output)
    }

    fn refund(&mut self) -> Action {
        let at = self.order();
        let order = &mut self.orders[at];
        let left = order.cents - order.refunded;
        let cents = self.random.between(1, left.max(1)).min(left);
        order.refunded += cents;
        let [amount, refunded, total] = [cents, order.refunded, order.cents].map(money);
        let id = &order.id;
        let output = format!("{id}: {amount} refunded, {refunded} of {total} in all");
        let input = json!({"order": id, "amount": amount});
        Action::new("issue_refund", input, output)
    }

    fn history(&self, size: usize, now: i64) -> Action {
        let customer = self.customer();
        let mut page = Page::new(self.ways.language, String::new(), 0);
        let mut time = now;
        while page.length < size {
            time -= self.random.milliseconds(600_000, 90_000_000);
            let order = &self.orders[self.random.pick(&customer.orders)];
            let before = format!("{} {}: ", clock(time), order.id);
            page.add_event(&self.random, &before, order.carrier);
        }
        let input = json!({"customer": customer.id});
        Action::new("read_history", input, page.text)
    }
}

impl Workspace for HelpDesk {
    /// The next customer; at times one who was here before.
    fn turn(&mut self) -> Option<Topic> {
        if self.customers.len() > 2 && self.random.percent(20) {
            self.current = self.random.index(self.customers.len());
        } else if !self.visited.is_empty() {
            self.add_customer();
        }
        None
    }

    fn topic(&self) -> Topic {
        let customer = self.customer();
        let [order, other] = [(); 2].map(|()| &self.orders[self.random.pick(&customer.orders)]);
        let earlier = self.visited.get(self.random.index(self.visited.len()));
        Topic {
            random: self.random.clone(),
            workspace: WorkspaceKind::HelpDesk,
            language: self.ways.language,
            noun: self.ways.language.say(order.item),
            path: order.id.clone(),
            symbol: customer.id.clone(),
            other_place: other.id.clone(),
            earlier: earlier.map_or_else(String::new, |at| self.orders[*at].id.clone()),
        }
    }

    /// One look-up or several, or one change.
    fn round(&mut self, choice: WorkChoice<'_>, moment: WorkMoment) -> Round {
        let random = self.random.clone();
        let size = moment.size(random.size(&SIZES.help_desk_results));
        let intent = || match choice {
            WorkChoice::Weighted(weights) if moment.scale_percent <= 100 => {
                random.weighted_key(weights)
            }
            _ => LONG[random.weighted(&LONG.map(|(_, weight)| weight))].0,
        };
        let first = intent();
        let mut actions = vec![self.run(first, size, moment.now)];
        // Look-ups do not depend on each other.
        let reads = |intent| !matches!(intent, Intent::Change | Intent::Refund | Intent::Write);
        for _ in 0..random.weighted(&[78, 16, 6]) {
            let next = intent();
            if reads(first) && reads(next) {
                actions.push(self.run(next, size / 2, moment.now));
            }
        }
        let topic = self.topic();
        let (findings, thoughts) = (bank("desk.findings"), bank("desk.thoughts"));
        let mut text = topic.say(&[topic.opening(first)]);
        if random.percent(40) {
            let finding = topic.say(&[findings]);
            text = format!("{finding}{}{text}", topic.language.gap());
        }
        let explanations = moment.talk.explanations(&random, 30, 4);
        let thinks = moment.talk.thinks(&random, 45);
        for _ in 0..explanations {
            let banks = [findings, thoughts].repeat(3);
            let explanation = topic.say(&banks[..random.count(3, 6)]);
            text = format!("{explanation}\n\n{text}");
        }
        Round {
            thought: thinks.then(|| topic.say(&vec![thoughts; random.count(2, 5)])),
            paragraphs: vec![text],
            actions,
        }
    }

    /// The look-up whose result says a planted fact, or the change that is refused.
    fn show(&mut self, channel: Channel, content: &Content, moment: WorkMoment) -> Action {
        let random = self.random.clone();
        let size = random.count(150, 700) * whole(random.usual_percent()) / 100;
        let mut shown = match channel {
            Channel::Failure => {
                let order = &self.orders[self.order()].id;
                let input = json!({"order": order, "status": random.word("desk.states")});
                let refused = format!("{order}: nothing was changed");
                Action::new("change_order", input, refused)
            }
            Channel::Count => {
                let subject = self.ways.language.say(random.word("desk.subjects"));
                let input = json!({"subject": subject});
                Action::new("count_cases", input, format!("# {subject}"))
            }
            Channel::Comment => self.look(size, moment.now),
            Channel::Runbook => self.policy(size),
            _ => self.history(size, moment.now),
        };
        for line in content.lines(&random, self.ways, channel) {
            shown.output.push('\n');
            shown.output.push_str(&line);
        }
        shown.failed = channel == Channel::Failure;
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stays() {
        let mut help_desk = HelpDesk::new(&Recipe::default(), &Random::new(5, "test"));
        for _ in 0..40 {
            let changed = help_desk.change();
            let (order, state) = (&changed.input["order"], &changed.input["status"]);
            let refunded = help_desk.refund();
            let found = help_desk.orders.iter().find(|it| *order == it.id).expect("the order");
            assert_eq!(*state, found.state);
            assert!(found.refunded <= found.cents);
            assert!(refunded.output.contains("refunded"));
            help_desk.turn();
        }
    }
}
