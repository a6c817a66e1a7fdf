//! Price files, schemes and prices.

use super::*;

#[track_caller]
fn check(model: &str, usage: Usage, costs: Option<u64>) {
    let prices = Prices::built_in().unwrap();
    let cost = prices.of(model).and_then(|(_, price)| price.per_token.cost(&usage));
    assert_eq!(cost, costs.map(Usd), "{model}");
}

#[test]
fn a_call_costs_the_sum_of_its_classes() {
    let usage = Usage {
        input_uncached: Tokens(1),
        cache_write_5m: Tokens(10),
        cache_write_1h: Tokens(100),
        cache_read: Tokens(1_000),
        output: Tokens(10_000),
    };
    // Five dollars per million in, 6.25 and 10 written, 0.5 read, 25 out.
    let whole = 5_000 + 10 * 6_250 + 100 * 10_000 + 1_000 * 500 + 10_000 * 25_000;
    check("claude-opus-4-6", usage, Some(whole));
    check("claude-opus-4-5-20251101", usage, Some(whole));
    check("openrouter/anthropic/claude-opus-4-5-20251101", usage, Some(whole));
    check("anthropic/claude-opus-9", usage, None);
}

#[test]
fn another_model_costs_a_share_of_the_agents_where_both_are_known() {
    let prices = Prices::built_in().unwrap();
    let check = |agent: Option<&str>, named: &str, expected: Option<(u64, u64)>| {
        let input = agent.and_then(|agent| prices.of(agent)?.1.per_token.input);
        let found =
            agent.zip(input).and_then(|(agent, input)| prices.relative(agent, input, named));
        let found = found.map(|price| (price.input, price.output));
        assert_eq!(found, expected, "{agent:?} {named}");
    };
    // 0.1 and 0.5 dollars against 3; 0.05 and 0.4 against 1.25.
    check(Some("claude-sonnet-4-20250514"), FAST, Some((33, 167)));
    check(Some("gpt-5-codex"), FAST, Some((40, 320)));
    check(Some("gpt-5-codex"), "gpt-5.4", Some((2_000, 12_000)));
    check(Some("gpt-5-codex"), "nobody's", None);
    check(Some("nobody's"), FAST, None);
    check(None, FAST, None);
    // Where the agent's tokens cost twice as much in the mean over its models, the other is half of that.
    let mean = prices.relative("gpt-5-codex", Usd(2_500), FAST).unwrap();
    assert_eq!((mean.input, mean.output), (20, 160));
}

#[test]
fn the_whole_request_costs_more_above_the_longest_prompt_at_the_usual_price() {
    let prices = Prices::built_in().unwrap();
    let check = |model: &str, read: u64, costs: u64| {
        let usage =
            Usage { cache_read: Tokens(read), ..Usage::uncached(Tokens(2_000), Tokens(100)) };
        let cost = prices.of(model).unwrap().1.per_token.cost_of_call(&usage);
        assert_eq!(cost, Some(Usd(costs)), "{model} {read}");
    };
    // In dollars per million: 2.5 in, 0.25 read, 15 out, and beyond 272,000 tokens twice as much and 1.5 times.
    let usual = 2_000 * 2_500 + 100 * 15_000;
    check("gpt-5.4", 270_000, usual + 270_000 * 250);
    let long = 2 * 2_000 * 2_500 + 150 * 15_000;
    check("gpt-5.4", 270_001, long + 2 * 270_001 * 250);
    // 1.25, 0.125 and 10; 200,000 tokens.
    let long = 2 * 2_000 * 1_250 + 150 * 10_000;
    check("gemini-2.5-pro", 200_000, long + 2 * 200_000 * 125);
    // 0.1, 0.01 and 0.5; 100,000 tokens, and five times as much of each.
    check("claude-haiku-5-5", 100_000, 5 * (2_000 * 100 + 100 * 500 + 100_000 * 10));
    // One price for every prompt.
    check("claude-opus-4-6", 900_000, 2_000 * 5_000 + 100 * 25_000 + 900_000 * 500);
}

#[test]
fn a_class_without_a_price_makes_the_cost_unknown() {
    let read = |read| Usage { cache_read: Tokens(read), ..Usage::uncached(Tokens(2), Tokens(0)) };
    check("gpt-5-codex", read(8), Some(2 * 1_250 + 8 * 125));
    let written = Usage { cache_write_5m: Tokens(1), ..read(8) };
    check("gpt-5-codex", written, None);
}

#[test]
fn a_file_of_ones_own_goes_before_the_built_in_ones() {
    let text = "format = 'proctor-prices'\nversion = 1\nprovider = 'openai'\n\
         date = '2026-01-02'\ndocument = 'a letter'\n\
         [[models]]\nnames = ['gpt-5.5', 'mine/gpt-5.4']\ninput = 4\ncache_read = 0.4\n\
         latency = { start_ms = 500, prefill_per_second = 1_000, cached_per_second = 10_000, decode_per_second = 50 }\n";
    let prices = Prices::built_in().unwrap().with_file("mine.toml", text).unwrap();
    let (list, price) = prices.of("gpt-5.5-2026-04-23").unwrap();
    assert_eq!((&*list.file, price.per_token.input), ("mine.toml", Some(Usd(4_000))));
    assert_eq!(prices.of("openai/gpt-5.4").unwrap().0.date, "2026-11-29");
    assert_eq!(&*prices.of("mine/gpt-5.4-2026-03-05").unwrap().0.file, "mine.toml");
    let usage = Usage { cache_read: Tokens(10_000), ..Usage::uncached(Tokens(2_000), Tokens(100)) };
    let taken = price.latency.unwrap().milliseconds(1, &usage);
    // 0.5 s to start, 2 s for new input, 1 s for cached input, 2 s for the answer.
    assert!((taken - 5_500.0).abs() < 1e-9, "{taken}");
}

#[test]
fn a_mistake_in_a_file_is_named_with_its_line() {
    let head = "format = 'proctor-prices'\nversion = 1\nprovider = 'x'\n\
         date = '2026-01-02'\ndocument = 'd'\n";
    let says = |text: &str| {
        let prices = Prices::built_in().unwrap();
        prices.with_file("p.toml", text).unwrap_err().to_string()
    };
    assert!(says("input = 3").contains("this is no price file"));
    for date in ["1-2", "13-02", "02-30", "0102"] {
        let text = head.replace("01-02", date);
        assert!(says(&text).contains("line 4: `date` must be a day"), "{date}");
    }
    for (line, problem) in [
        (
            "retired = 'soon'",
            "line 8: `models.retired` must be a day such as `2026-11-21`, not `soon`",
        ),
        ("[[models]]\nnames = ['n', 'm']", "line 8: model `m` is there twice"),
        ("inptu = 3", "line 8: unknown key `models.inptu`, did you mean `input`?"),
        ("input = -1", "line 8: `models.input` must be a number of at least 0"),
        ("windows = [2, 1]", "line 8: `models.windows` must be a list of ascending numbers"),
        ("input = 0.0001", "line 8: `models.input` must be a multiple of"),
    ] {
        let text = format!("{head}[[models]]\nnames = ['m']\n{line}\n");
        assert!(says(&text).contains(problem), "{}", says(&text));
    }
}

#[test]
fn a_small_model_that_is_gone_is_refused_and_another_one_named() {
    let check = |date: &str, fast: &str, expected: Option<&str>| {
        let text = format!(
            "format = 'proctor-prices'\nversion = 1\nprovider = 'x'\ndate = '{date}'\ndocument = 'd'\n\
             fast = '{fast}'\n[[models]]\nnames = ['old']\nretired = '2026-05-01'\ninput = 1\noutput = 1\n\
             [[models]]\nnames = ['new']\ninput = 2\noutput = 2\n"
        );
        let prices = Prices::built_in().unwrap().with_file("p.toml", &text);
        let error = prices.err();
        let found = error.as_ref().map(ToString::to_string);
        assert_eq!(found.as_deref(), expected, "{date} {fast}");
        let hint = error.and_then(|error| error.hint);
        assert_eq!(hint.is_some_and(|hint| hint.contains("`new`")), expected.is_some());
    };
    let gone = "`p.toml`: line 6: the model of `fast`, `old`, was retired on 2026-05-01, and these prices are of \
                2026-05-01";
    check("2026-05-01", "old", Some(gone));
    check("2026-05-01", "new", None);
    // One of the files that come with Proctor.
    check("2026-05-01", "claude-haiku-5-5", None);
    let gone = "`p.toml`: line 6: the model of `fast`, `claude-3-5-haiku`, was retired on 2026-02-19, and these \
                prices are of 2026-05-01";
    check("2026-05-01", "claude-3-5-haiku", Some(gone));
    let unknown = "`p.toml`: line 6: the model of `fast`, `nobody-s`, has no price";
    check("2026-05-01", "nobody-s", Some(unknown));
}

#[test]
fn a_model_with_a_price_of_writing_changes_the_scheme_of_its_provider() {
    let prices = Prices::built_in().unwrap();
    let check = |model: &str, write: Option<u32>, read: u32, ttl_seconds: u64| {
        let schemes = prices.schemes("openai", Some(model));
        let scheme = schemes.iter().find(|scheme| scheme.name == "auto-prefix").unwrap();
        let found = (scheme.rates.write, scheme.rates.read, scheme.ttl_seconds);
        assert_eq!(found, (write, read, Some(ttl_seconds)), "{model}");
    };
    check("gpt-5.5", None, 100, 600);
    check("gpt-5.6-terra", Some(1_250), 100, 1_800);
    check("gpt-6.1-terra", Some(1_250), 50, 1_800);
    check("gpt-4o-2024-11-20", None, 500, 600);
}

#[test]
fn the_ends_of_a_read_are_those_of_the_models_that_are_served() {
    let prices = Prices::built_in().unwrap();
    assert_eq!(prices.read_shares("anthropic"), Some([25, 100]));
    assert_eq!(prices.read_shares("openai"), Some([50, 500]));
    assert_eq!(prices.read_shares("gemini"), Some([50, 100]));
    assert_eq!(prices.read_shares("nobody"), None);
    let own = "format = 'proctor-prices'\nversion = 1\nprovider = 'anthropic'\ndate = '2026-05-01'\n\
               document = 'd'\n[[models]]\nnames = ['m']\ninput = 10\ncache_read = 3\n\
               [[models]]\nnames = ['n']\nretired = '2026-05-01'\ninput = 10\ncache_read = 9\n";
    let prices = prices.with_file("own.toml", own).unwrap();
    assert_eq!(prices.read_shares("anthropic"), Some([25, 300]));
}

#[test]
fn a_bill_in_input_tokens_and_a_bill_in_dollars_say_the_same() {
    // A file without schemes: its models are billed under those of others.
    let ours = "format = 'proctor-prices'\nversion = 1\nprovider = 'us'\ndate = '2026-01-01'\ndocument = 'd'\n\
                [[models]]\nnames = ['ours']\ninput = 3.0\ncache_write = 3.3\ncache_read = 2.7\noutput = 9.0\n";
    let prices = Prices::built_in().unwrap().with_file("ours.toml", ours).unwrap();
    let mut seen = 0;
    for list in &prices.lists {
        for price in &list.models {
            let schemes = prices.schemes("anthropic", Some(&price.names[0]));
            let own = schemes.into_iter().filter(|scheme| {
                let mut own = list.schemes.iter();
                list.schemes.is_empty() || own.any(|own| own.name == scheme.name)
            });
            for scheme in own {
                let mut usage = Usage {
                    input_uncached: Tokens(1_000),
                    cache_read: Tokens(if scheme.name == "none" { 0 } else { 50_000 }),
                    output: Tokens(700),
                    ..Usage::default()
                };
                if scheme.rates.write.is_some() {
                    let is_long = scheme.ttl_seconds == Some(3_600);
                    let written =
                        if is_long { &mut usage.cache_write_1h } else { &mut usage.cache_write_5m };
                    *written = Tokens(9_000);
                }
                let Some(dollars) = price.per_token.cost(&usage) else {
                    continue;
                };
                let input = price.per_token.input.unwrap();
                let tokens = scheme.rates.cost(&usage) as f64 / 1_000.0;
                let ratio = tokens * input.0 as f64 / dollars.0 as f64;
                assert!((ratio - 1.0).abs() < 1e-2, "{:?} {}: {ratio}", price.names, scheme.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_model_that_names_its_shortest_prefix_changes_the_schemes_of_its_provider() {
    let prices = Prices::built_in().unwrap();
    let minimum = |model: Option<&str>| -> Vec<(String, u64)> {
        prices.schemes("anthropic", model).into_iter().map(|of| (of.name, of.minimum.0)).collect()
    };
    let named = |five, auto| {
        [("none", 0), ("anthropic-5m", five), ("anthropic-1h", five), ("auto-prefix", auto)]
            .map(|(name, minimum)| (name.to_owned(), minimum))
    };
    assert_eq!(minimum(None), named(1_024, 1_024));
    assert_eq!(minimum(Some("claude-opus-4-6")), named(4_096, 1_024));
    for (model, expected) in [
        ("claude-opus-5", 512),
        ("claude-fable-5", 512),
        ("claude-opus-4-7", 2_048),
        ("claude-opus-4-8", 1_024),
        ("claude-sonnet-4-5-20250929", 1_024),
        ("claude-sonnet-5", 1_024),
        ("claude-haiku-4-5-20251001", 4_096),
    ] {
        assert_eq!(minimum(Some(model)), named(expected, 1_024), "{model}");
    }
}

#[test]
fn a_model_with_several_windows_has_the_smallest_first() {
    let prices = Prices::built_in().unwrap();
    let windows = |model: &str| -> (Option<u64>, Vec<u64>) {
        let (_, price) = prices.of(model).unwrap();
        let all = price.windows.iter().map(|window| window.0);
        (price.window.map(|window| window.0), all.collect())
    };
    let both = vec![200_000, 1_000_000];
    assert_eq!(windows("claude-sonnet-4-5-20250929"), (Some(200_000), both));
    assert_eq!(windows("gpt-5-mini"), (Some(400_000), vec![400_000]));
    assert_eq!(windows("claude-3-7-sonnet"), (None, vec![]));
    let halved = prices.lists().iter().all(|list| list.batch == Some(500));
    assert!(halved);
}

#[test]
fn the_fast_model_is_the_cheapest_of_its_file_that_is_not_retired() {
    for list in Prices::built_in().unwrap().lists() {
        let fast = list.fast.as_ref().unwrap();
        // Of a million tokens read and a fifth of that written, as a summariser does.
        let usage = Usage::uncached(Tokens(1_000_000), Tokens(200_000));
        let served = list.models.iter().filter(|price| list.serves(price));
        let priced = served.filter_map(|price| Some((price.per_token.cost(&usage)?, price)));
        let (_, cheapest) = priced.min_by_key(|(cost, _)| *cost).unwrap();
        assert!(cheapest.names.contains(fast), "{fast}: {:?}", cheapest.names);
    }
}

#[test]
fn every_model_has_a_source_and_its_day() {
    for list in Prices::built_in().unwrap().lists() {
        for model in &list.models {
            let source = model.document.as_ref().zip(model.date.as_ref());
            assert!(source.is_some(), "{:?}", model.names);
        }
    }
}

#[test]
fn a_scheme_of_ones_own_goes_before_that_of_the_models_provider() {
    let own = "format = 'proctor-prices'\nversion = 1\nprovider = 'proxy'\ndate = '2026-01-01'\ndocument = 'd'\n\
               [[schemes]]\nname = 'auto-prefix'\nreuse = 'longest_prefix'\nread = 0.5\n";
    let built_in = Prices::built_in().unwrap();
    let read = |prices: &Prices, provider: &str, model: Option<&str>| {
        let schemes = prices.schemes(provider, model).into_iter();
        let found = schemes.filter(|scheme| scheme.name == "auto-prefix");
        found.map(|scheme| (scheme.rates.read, scheme.minimum.0)).collect::<Vec<_>>()
    };
    assert_eq!(read(&built_in, "anthropic", Some("gpt-5-codex")), [(100, 1_024)]);
    assert_eq!(read(&built_in, "anthropic", Some("gemini-2.5-pro")), [(100, 2_048)]);
    assert_eq!(read(&built_in, "gemini", None), [(100, 4_096)]);
    let prices = built_in.with_file("own.toml", own).unwrap();
    assert_eq!(read(&prices, "anthropic", Some("gpt-5-codex")), [(500, 0)]);
}
