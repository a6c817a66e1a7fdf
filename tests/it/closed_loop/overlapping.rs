//! Requests that come while a strategy is at work.

use std::sync::Condvar;

use proctor::live::Skip;
use proctor::model::{Model, ModelKind, Reply, Request};

use super::apis::{body, items};
use super::*;

/// A model that waits, until it is opened or for a while.
#[derive(Debug)]
struct Gate {
    inner: Offline,
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Milliseconds; the first answers take none.
    pauses: Mutex<Vec<u64>>,
}

impl Gate {
    fn new(is_open: bool, pauses: Vec<u64>) -> Arc<Self> {
        Arc::new(Self {
            inner: Offline::new(Arc::new(CountedTexts::new(Arc::new(CharsPer4)))),
            is_open: Mutex::new(is_open),
            opened: Condvar::new(),
            pauses: Mutex::new(pauses),
        })
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Model for Gate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn kind(&self) -> ModelKind {
        self.inner.kind()
    }

    fn answer(&self, request: &Request, repeat: u32, counts: &CountedTexts) -> Reply {
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open));
        let pause = self.pauses.lock().unwrap().pop();
        std::thread::sleep(Duration::from_millis(pause.unwrap_or_default()));
        self.inner.answer(request, repeat, counts)
    }
}

fn front(model: &Arc<Gate>, patience: u64) -> (Live, Bytes) {
    let setting = StrategySetting {
        spec: spec("codex"),
        window: Window::new(WINDOW),
        sizes: Sizes::Billed,
        summariser: model.clone(),
        counts: Arc::new(CountedTexts::new(Arc::new(CharsPer4))),
    };
    let live = Live::new(vec![setting], Duration::from_millis(patience), READER);
    let log = Bytes::default();
    live.keep(Log::new(log.clone()), true);
    (live, log)
}

fn send(live: &Live, items: &[Value]) -> Ticket {
    let body = body(Api::Messages, items);
    let sent = live.send(&LiveCell::default(), Api::Messages, &body, Timestamp(7));
    sent.ticket.unwrap()
}

/// Whether the strategy was late at the request that was sent last.
fn was_late(log: &Bytes) -> bool {
    match log.events().last() {
        Some(Event::Sent { skipped, .. }) => *skipped == Some(Skip::Late),
        other => panic!("{other:?}"),
    }
}

fn assert_same_again(log: &Bytes) {
    let (again, _) = front(&Gate::new(true, Vec::new()), 1);
    assert_eq!(again.restore(&log.events()), Ok(Vec::new()));
}

#[test]
fn a_strategy_at_work_delays_no_other_conversation() {
    let gate = Gate::new(false, Vec::new());
    let (live, log) = front(&gate, 300);
    let mut calls = 0..40;
    let late = calls.find(|call| {
        send(&live, &items(Api::Messages, *call));
        was_late(&log)
    });
    let late = late.expect("a call that asks for a summary");
    // The strategy is at work as long as nobody opens the gate.
    let other = [json!({"role": "user", "content": "another task"})];
    assert_eq!(send(&live, &other).conversation, 1);
    assert!(!was_late(&log));
    let mut branch = items(Api::Messages, late - 1);
    branch.push(json!({"role": "assistant", "content": "no"}));
    branch.push(json!({"role": "user", "content": "another way"}));
    assert_eq!(send(&live, &branch).conversation, 2);
    assert!(was_late(&log), "it begins where the first one left it");
    gate.open();
    let ticket = send(&live, &items(Api::Messages, late + 1));
    assert_eq!((ticket.conversation, ticket.call), (0, late + 1));
    assert!(!was_late(&log));
    assert_same_again(&log);
}

#[test]
fn what_overlaps_is_done_again_as_it_was() {
    for round in 0..6 {
        let pauses = (0..400).map(|at| (at * 7 + round) % 23).collect();
        let (live, log) = front(&Gate::new(true, pauses), 12);
        std::thread::scope(|scope| {
            // Two clients have one conversation; a third has its own, and a fourth parts from it.
            for client in 0..4_u64 {
                let live = &live;
                scope.spawn(move || {
                    for call in 0..26 {
                        let mut items = items(Api::Messages, call);
                        if client > 1 {
                            items[0] = json!({"role": "user", "content": "go on"});
                        }
                        if client == 3 && call > 9 {
                            items[11] = json!({"role": "assistant", "content": "no"});
                            items[12] = json!({"role": "user", "content": "why?"});
                        }
                        let ticket = send(live, &items);
                        let place = call as u64 + client + round;
                        if place.is_multiple_of(5) {
                            let said = (400, "prompt is too long: 9 tokens > 8 maximum");
                            let body = body(Api::Messages, &items);
                            live.refused(ticket, Api::Messages, &body, said);
                        }
                        if place.is_multiple_of(3) {
                            let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}],
                                "usage": {"input_tokens": 400 * (call + 1)}});
                            live.answered(ticket, Some(&answer.to_string()), Timestamp(8));
                        }
                    }
                });
            }
        });
        assert_same_again(&log);
    }
}
