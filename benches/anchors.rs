//! The sizes of a session whose every call is billed: 10,000 calls and 100,000.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use proctor::bill::{Bill, Sizes};
use proctor::session::{Message, Role, Session, SessionError, SessionParts, Tag};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Tokens, Usage};

/// A call with a tool result of its own, a turn in ten typed, and bills that do not follow the count exactly.
fn session(calls: u64) -> Result<Session, SessionError> {
    let mut messages = Vec::new();
    let mut billed = 20_000;
    for call in 0..calls {
        let text = format!("{call} ").repeat(40);
        billed += 120 + call * 37 % 90;
        let typed = (call % 10 == 0).then_some(Tag::TypedUser);
        messages.push(Arc::new(Message::text(Role::User, text).with_tags(typed)));
        let mut answer = Message::text(Role::Assistant, "Done.");
        answer.details.usage = Some(Usage::uncached(Tokens(billed), Tokens(30)));
        messages.push(Arc::new(answer));
    }
    Session::new(SessionParts { id: "billed".to_owned(), messages, ..SessionParts::default() })
}

fn bills(c: &mut Criterion) {
    for calls in [10_000, 100_000] {
        let Ok(session) = session(calls) else {
            return;
        };
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        counts.preload(session.texts());
        c.bench_function(&format!("anchors of {calls} calls"), |b| {
            b.iter(|| Bill::of(black_box(&session), &counts, Sizes::Billed, None));
        });
    }
}

criterion_group!(benches, bills);
criterion_main!(benches);
