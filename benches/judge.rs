//! One judgement of two samples: on 12 sessions and on 180, each with 50 probes.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use proctor::compare::judge::judge;
use proctor::compare::{JudgingRule, ProbeSample, Sample, SessionSample};

const PROBES: usize = 50;

/// Sessions of different bills, in each of which one in so many facts is lost.
fn sample(sessions: usize, share: f64, one_in: usize) -> Sample {
    let mut sample = Sample::default();
    for at in 0..sessions {
        let mut session = SessionSample::default();
        let bill = share * (10 + at * 7 % 11) as f64;
        for (axis, value) in [("completion", 1.0), ("bill", bill), ("actions", 0.9)] {
            session.metrics.insert(axis.to_owned(), vec![value]);
        }
        for fact in 0..PROBES {
            let score = match (at * 13 + fact * 5) % one_in {
                0 => 0.0,
                _ => 1.0,
            };
            let probe = ProbeSample {
                kind: "recall".to_owned(),
                weight: 1,
                survival: vec![score],
                survival_most: Vec::new(),
                accuracy: Vec::new(),
                answers: Vec::new(),
                lost_at: None,
            };
            session.probes.insert(format!("recall-{fact}@50"), probe);
        }
        sample.sessions.insert(format!("session-{at}"), session);
    }
    sample
}

fn judgements(c: &mut Criterion) {
    let rule = JudgingRule::of_population(1);
    for sessions in [12, 180] {
        let [baseline, candidate] =
            [(1.0, 11), (0.9, 7)].map(|(share, one_in)| sample(sessions, share, one_in));
        c.bench_function(&format!("judge {sessions} sessions"), |b| {
            b.iter(|| judge(black_box(&baseline), black_box(&candidate), &rule));
        });
    }
}

criterion_group!(benches, judgements);
criterion_main!(benches);
