//! Costs at other prices: a baseline that is priced again says what it would have said at those prices.

use std::fmt::Write as _;
use std::fs;
use std::sync::LazyLock;

use proctor::compare::{ComparedRun, Sample};
use proctor::model::price::{LongPrompts, Rates, RelativePrice};
use proctor::record::journal::RecordedRun;
use proctor::runner::Plan;
use proctor::units::Tokens;

use crate::goldens::sampled;
use crate::support::{EVERY_PART, run_plan, scenario};

/// A price file of the agent's model and of two others, in dollars per million tokens.
fn price_file(input: f64, read: f64, small: f64) -> String {
    format!(
        "format = 'proctor-prices'\nversion = 1\nprovider = 'anthropic'\ndate = '2026-01-02'\n\
         document = 'a letter'\nfast = 'our-small'\n\
         [[models]]\nnames = ['our-model']\ninput = {input}\ncache_write_5m = {}\ncache_read = {read}\noutput = {}\n\
         [[models]]\nnames = ['our-small']\ninput = {small}\noutput = {}\n\
         [[models]]\nnames = ['our-other']\ninput = 7\noutput = 11\n",
        2.0 * input,
        4.0 * input,
        3.0 * small
    )
}

/// All presets, and summaries by other models: the small one, another, and one that no price file names.
fn run(prices: &str) -> RecordedRun {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("prices.toml"), prices).unwrap();
    let mut text = "name = 'priced'\ncounter = 'chars/4'\nmodels.reader = 'none'\n\
                    cache = { prices = 'prices.toml', model = 'our-model' }\n\
                    [window]\nmode = 'fit'\nfraction = 0.7\n"
        .to_owned();
    for family in ["code-review", "debugging"] {
        let _ = write!(
            text,
            "[[sessions]]\nsynthetic = {{ family = '{family}', seed = 3, tokens = 40_000 }}\n"
        );
    }
    for name in EVERY_PART {
        let _ = write!(text, "[[strategies]]\npreset = '{name}'\n");
    }
    for model in ["fast", "our-other", "of-nobody"] {
        let _ = write!(
            text,
            "[[strategies]]\npreset = 'compact-directly'\nname = '{model}'\n\
             set = {{ summarize.mode = 'fresh', summarize.model = '{model}' }}\n"
        );
    }
    let plan = Plan::new(scenario(&text, folder.path())).unwrap();
    let (outcome, run) = run_plan(&plan);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    run
}

/// A run at some prices, made once for all tests.
fn old_run() -> &'static RecordedRun {
    static RUN: LazyLock<RecordedRun> = LazyLock::new(|| run(&price_file(3.0, 0.3, 1.0)));
    &RUN
}

/// The run as a baseline's file holds it.
fn stored(run: &RecordedRun) -> ComparedRun {
    let text = ComparedRun::of(&run.manifest, &run.cells).to_text().unwrap();
    ComparedRun::parse(&text).unwrap()
}

/// The same run as if it had been measured at other prices, of which `seed` makes some.
fn at_other_prices(run: &RecordedRun, seed: u32) -> ComparedRun {
    let mut run = run.clone();
    let number =
        |of: u32| 50 + (seed.wrapping_mul(2_654_435_761) ^ of.wrapping_mul(40_503)) % 4_000;
    for session in &mut run.manifest.sessions {
        session.price.as_mut().unwrap().date = format!("day {seed}");
    }
    for cell in &mut run.cells {
        for record in &mut cell.prompt_cache {
            record.rates = Rates {
                write: (!seed.is_multiple_of(5)).then(|| number(1)),
                read: number(2),
                output: number(3),
                long_prompts: None,
            };
            for (at, price) in &mut record.other_models {
                let name = cell.model_calls[*at].model.as_deref().unwrap();
                let length = u32::try_from(name.len()).unwrap();
                // The price of one of them is unknown on some days.
                *price = (name != "of-nobody" && length + seed % 7 != 9).then(|| RelativePrice {
                    input: number(length).into(),
                    output: number(length + 90).into(),
                    ..RelativePrice::default()
                });
            }
        }
    }
    stored(&run)
}

/// Prices the older one with the newer one's prices, and both must be the same then.
#[track_caller]
fn check(older: &ComparedRun, newer: &ComparedRun) {
    let mut priced = older.clone();
    let differing = older.repriced(newer);
    assert_eq!(differing.len(), newer.sessions.len());
    let (done, left) = priced.reprice(newer, &differing);
    assert_eq!((done.sessions, left), (differing.len(), Vec::new()));
    assert_eq!(priced.strategies, newer.strategies);
    assert_eq!(priced.repriced(newer), Vec::<String>::new());
}

#[test]
fn a_baseline_priced_again_is_the_one_that_would_have_been_saved_at_those_prices() {
    let (old, new) = (old_run(), &run(&price_file(2.0, 0.5, 1.7)));
    let others = |run: &RecordedRun| {
        let calls = run.cells.iter().flat_map(|cell| &cell.model_calls);
        calls.filter(|call| call.model.is_some()).count()
    };
    assert!(others(old) > 5, "{}", others(old));
    let (old_source, new_source) = (stored(old), stored(new));
    let costs = |source: &ComparedRun| {
        let ours = source.strategy("observation-masking").unwrap();
        let first = ours.sessions.values().next().unwrap();
        first.metrics["bill"].clone()
    };
    assert_ne!(costs(&old_source), costs(&new_source));
    check(&old_source, &new_source);
    check(&new_source, &old_source);
    for seed in sampled(0..15) {
        check(&old_source, &at_other_prices(new, seed));
        check(&at_other_prices(old, seed), &at_other_prices(new, seed + 1));
        // And back.
        check(&at_other_prices(old, seed), &old_source);
    }
}

#[test]
fn without_a_price_a_session_keeps_the_costs_it_has() {
    let newer = at_other_prices(old_run(), 1);
    let whole = stored(old_run());
    let sessions = whole.repriced(&newer);
    let check = |alter: &dyn Fn(&mut ComparedRun, &mut ComparedRun), left: usize| {
        let (mut older, mut newer) = (whole.clone(), newer.clone());
        alter(&mut older, &mut newer);
        let before = older.clone();
        let (done, kept) = older.reprice(&newer, &sessions);
        assert_eq!((kept.len(), done.sessions), (left, sessions.len() - left));
        for sample in older.samples() {
            for id in &kept {
                let same = before.strategy(&sample.strategy).unwrap();
                assert_eq!(sample.sessions.get(id), same.sessions.get(id));
            }
        }
    };
    check(&|_, _| (), 0);
    // One of them has no prices.
    check(&|older, _| older.rates.clear(), 2);
    check(&|_, newer| newer.rates.clear(), 2);
    // Tokens are not divided into classes as before.
    let other_scheme = |source: &mut ComparedRun| {
        source.rates.values_mut().next().unwrap().scheme = "another".to_owned();
    };
    check(&|_, newer| other_scheme(newer), 1);
    // Long prompts are in the tokens at another price, of the agent's model or of the other one.
    let long = Some(LongPrompts { over: Tokens(200_000), input: 2_000, output: 1_500 });
    let longer = |source: &mut ComparedRun| {
        source.rates.values_mut().next().unwrap().rates.long_prompts = long;
    };
    check(&|_, newer| longer(newer), 1);
    check(&|older, _| longer(older), 1);
    // Calls of other models are in the tokens already, at the ratio that prices had then.
    let mixed = |source: &mut ComparedRun| {
        source.rates.values_mut().next().unwrap().call_prices = [(1, None)].into();
    };
    check(&|_, newer| mixed(newer), 1);
    let other_longer = |source: &mut ComparedRun| {
        let prices = source.rates.values_mut().flat_map(|prices| &mut prices.other_models);
        for price in prices.filter_map(|(_, price)| price.as_mut()) {
            price.long_prompts = long;
        }
    };
    check(&|_, newer| other_longer(newer), 2);
    check(
        &|older, newer| {
            other_longer(older);
            other_longer(newer);
        },
        0,
    );
    // The candidate has not asked that model in any session.
    let unasked = |source: &mut ComparedRun| {
        source.rates.values_mut().for_each(|prices| {
            prices.other_models.remove("fast");
        });
    };
    check(&|_, newer| unasked(newer), 2);
    // In one session it has, and the other's model costs the same.
    let asked_once = |source: &mut ComparedRun| {
        let first = source.rates.values_mut().next().unwrap();
        first.other_models.remove("fast");
    };
    check(&|_, newer| asked_once(newer), 0);
    // Strategies that ask no other model need no price of one.
    let offline = |source: &mut ComparedRun| {
        let asks = |sample: &Sample| {
            let mut billed = sample.sessions.values().flat_map(|it| &it.billed);
            billed.any(|billed| !billed.other_models.is_empty())
        };
        source.strategies.retain(|_, sample| !asks(sample));
        let strategies = &source.strategies;
        source.order.retain(|name| strategies.contains_key(name));
    };
    check(
        &|older, newer| {
            offline(older);
            unasked(newer);
        },
        0,
    );
}
