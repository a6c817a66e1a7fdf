//! Shapes of secrets, one per line; the examples are put together so that none stands in the file.

use super::*;
use crate::{Role, Tag, Thinking, ToolResult, ToolSchema, ToolUse};

/// Redacts the text, in which `{}` is the secret, and expects the name in its place.
#[track_caller]
fn check(text: &str, secret: &str, name: &str) {
    let mut redactor = Redactor::new();
    let redacted = redactor.text(&text.replace("{}", secret));
    assert_eq!(redacted, text.replace("{}", name));
    assert_eq!(redactor.text(&redacted), redacted, "twice");
}

/// Nothing is to be found in the text.
#[track_caller]
fn keeps(text: &str) {
    assert_eq!(Redactor::new().text(text), text);
}

/// Letters and digits that look drawn by lot.
fn random(length: usize) -> String {
    let letters = b"q7Wm2Zx9Kd4Rt8Yb3Nf6Hs1Vc5Lp0Gj";
    (0..length).map(|at: usize| char::from(letters[at * 7 % letters.len()])).collect()
}

#[test]
fn keys_and_tokens_are_told_by_how_they_begin() {
    let file: toml::Table = toml::from_str(include_str!("patterns.toml")).unwrap();
    let tokens = file["tokens"].as_table().unwrap();
    let mut bodies: Vec<(&str, String)> = tokens
        .iter()
        .map(|(prefix, least)| {
            (prefix.as_str(), random(usize::try_from(least.as_integer().unwrap()).unwrap()))
        })
        .collect();
    bodies.extend([
        ("eyJ", format!("{}.{}.{}", random(20), random(20), random(20))),
        ("AKIA", random(16).to_ascii_uppercase()),
        ("cio", random(32)),
        ("secret_", random(43)),
        ("dapi", "0123456789abcdef".repeat(2)),
    ]);
    for (prefix, body) in bodies {
        let token = format!("{prefix}{body}");
        let length = LENGTHS.iter().rev().find(|it| **it <= token.len());
        let pad = "x".repeat(length.unwrap() - "redacted-token-1-".len().min(*length.unwrap()));
        let name = if pad.is_empty() {
            "redacted-token-1".to_owned()
        } else {
            format!("redacted-token-1-{pad}")
        };
        check("key: {}.", &token, &name);
        check("(\"{}\")", &token, &name);
        keeps(&format!("x{token}"));
    }
    let key = format!("{}-{}-{}", "sk", "ant-api03", random(40));
    check("export K={}\nnext", &key, "redacted-token-1-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    let token = [&random(14), ".atlasv1.", &random(67)].concat();
    check("token = {}", &token, &replacement(Class::Token, 1, token.len()));
    let token = ["pat", &random(14), ".", &"0123456789abcdef".repeat(4)].concat();
    check("token {}!", &token, &replacement(Class::Token, 1, token.len()));
    keeps("secret_name_of_the_second_key_in_the_store_2 and pattern.0123 and ciou32");
    keeps("sk-learn-is-a-library-of-methods");
    keeps("eyJ is how a web token begins");
}

#[test]
fn private_keys_headers_and_addresses_are_told_by_what_is_around_them() {
    let body = format!("{}\n{}", random(64), random(64));
    let (begin, end) =
        (["-----BEGIN", "RSA PRIVATE", "KEY-----"], ["-----END", "RSA PRIVATE", "KEY-----"]);
    let name = replacement(Class::PrivateKey, 1, body.len());
    check(&format!("{}\n{{}}\n{}\n", begin.join(" "), end.join(" ")), &body, &name);
    check(
        &format!("{}\\n{{}}\\n{}", begin.join(" "), end.join(" ")),
        &random(70),
        &replacement(Class::PrivateKey, 1, 70),
    );
    check(&format!("{}\n{{}}", begin.join(" ")), &body, &name);
    keeps("-----BEGIN PUBLIC KEY-----\nabc1\n-----END PUBLIC KEY-----");
    check("-H 'Authorization: Bearer {}'", &random(30), "redacted-credential-1-xx");
    check("authorization: Basic {}", "dXNlcjpwYXNz", "redacted-credential-1");
    check("Authorization: token {}", &random(40), "redacted-credential-1-xxxxxxxxxxxxxxxxxx");
    keeps("the bearer of this letter; a basic understanding; the bearer authentication");
    check("postgres://app:{}@db.internal:5432/x", "hunter2", "redacted-password-1");
    check("amqps://u:{}@h", "p@ss", "redacted-password-1");
    keeps("postgres://app:${PASSWORD}@db/x and https://host:8080/a@b and http://u@h.x/");
}

#[test]
fn people_and_their_folders_get_numbers() {
    check("Write to {}, please.", &["ada", "@", "lovelace.org"].concat(), "person1@example.com");
    keeps("person1@example.com, a@b, @scope/package@1.2.3, git@github.com:a/b, x@localhost");
    check("cd /home/{}/work", "ada", "user1");
    check("open /Users/{}", "ada.l", "user1");
    check("C:\\Users\\{}\\work", "ada", "user1");
    check("\"C:\\\\Users\\\\{}\\\\work\"", "ada", "user1");
    check("/mnt/c/Users/{}/x", "ada", "user1");
    check("ls /c/Users/{}/x", "ada", "user1");
    check("/cygdrive/d/Users/{}/x", "ada", "user1");
    check("\\\\wsl$\\Ubuntu\\home\\{}\\x", "ada", "user1");
    check("\\\\\\\\wsl.localhost\\\\Debian-12\\\\home\\\\{}\\\\x", "ada", "user1");
    check("vscode-remote://wsl+Ubuntu-24.04/home/{}/x", "ada", "user1");
    check("cd /var/home/{}/x", "ada", "user1");
    keeps("src/c/Users/list.ts, https://h.example.org/a/Users/list, my/var/home/page");
    check("projects/-home-{}-work/1.jsonl", "ada", "user1");
    check("file:///home/{}", "ada", "user1");
    keeps("src/home/index.ts, /home/user1/a, /Users/Shared, take-home-pay, /home/$USER/, /home/");
}

#[test]
fn names_that_say_so_hide_what_looks_drawn_by_lot() {
    let value = random(24);
    check("CLIENT_SECRET={}", &value, "redacted-secret-1-xxxxxx");
    check("\"api_key\": \"{}\",", &value, "redacted-secret-1-xxxxxx");
    check("{\\\"apiKey\\\":\\\"{}\\\"}", &value, "redacted-secret-1-xxxxxx");
    check("--session-token={} -v", &value, "redacted-secret-1-xxxxxx");
    check("password: '{}'", "correct-horse-staple", "redacted-secret-1");
    check("db_password := \"{}\"", "hunter2hunter2", "redacted-secret-1");
    for plain in [
        "password: string",
        "max_tokens: 4096",
        "token = next_token()",
        "if token == expected_token_number_1:",
        "api_key = os.environ['KEY_NUMBER_1']",
        "API_KEY=${API_KEY_1}",
        "secret_name: my-secret-1234",
        "TOKEN_FILE=/run/secrets/token1",
        "key: 0123456789abcdef0123456789abcdef",
        "git: 3f2a9c81d07be645",
        "secret: <your-secret-1>",
    ] {
        keeps(plain);
    }
}

#[test]
fn what_is_drawn_by_lot_and_no_secret_stays() {
    let hash = "3f2a9c81d07be6453f2a9c81d07be6453f2a9c81";
    let sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ/AKIAIOSFODNN7EXAMPLEabc+eyJhbGciOi";
    let table = [
        format!("commit {hash} (HEAD -> main)"),
        format!("{hash} refs/heads/main"),
        format!("index 3f2a9c8..d07be64 100644\nFrom {hash} Mon Sep 17 00:00:00 2001"),
        format!("cache_key: {sha256}"),
        format!("\"cacheKey\": \"{sha256}\""),
        format!("\"storeKey\": \"{hash}\""),
        format!("FROM alpine@sha256:{sha256}"),
        format!("checksum = \"{sha256}\""),
        format!("\"integrity\": \"sha512-{}==\"", random(86)),
        format!("h1:{}=", random(43)),
        format!("session {uuid}, request_key={uuid}"),
        format!("![](data:image/png;base64,{base64})"),
        format!("\"url\": \"data:image/png;base64,{base64}\""),
        "object_key: 'workspaces/ws_abc12345/artifacts/art_patch.patch'".to_owned(),
        "source_bundle_key = \"jobs/job_abc12345/source/a.tar.gz\"".to_owned(),
        "src/secrets.py:24:from random import choice1234".to_owned(),
        "src/api_key.rs-16-pub fn read1()".to_owned(),
        "original_add_auth = botocore.auth.SigV4Auth.add_auth".to_owned(),
        "nextPageToken: CAUQAA1234567890abcdefghij".to_owned(),
        "OPENROUTER_API_KEY=sk-or-v1-xxxxxxxxxxxxx".to_owned(),
        "AWS_SECRET_ACCESS_KEY=00000000000000000000a1".to_owned(),
        "/nix/store/0c0ic39qzvyd8pkz3b7nl9dgs3ql3yia-hello-2.12".to_owned(),
        "target/debug/deps/it-74fa4e3a96b8a993".to_owned(),
        format!("{{\"signature\":\"{}\"}}", random(400)),
        "toolu_01AaHKJphyeTw3GFp4Xgiekv msg_014zZenhdoNdehHngfKNhA1t".to_owned(),
        "12:30:45:AA and 1234567890:AAB".to_owned(),
    ];
    for text in table {
        keeps(&text);
        let json = JsonText::string(&text);
        assert_eq!(Redactor::new().json(&json), json);
    }
}

#[test]
fn what_a_name_or_an_address_gives_away_goes() {
    let value = random(40);
    let secret = |at: usize| replacement(Class::Secret, 1, at);
    check("AccountKey={};", &format!("{value}=="), &secret(42));
    check("ENCRYPTION_KEY={}", &"3f2a9c81d07be645".repeat(4), &secret(64));
    check("token: {}", "3f2a9c81d07be6453f2a9c81d07be6453f2a9c81", &secret(40));
    check("HEROKU_API_KEY={}", "550e8400-e29b-41d4-a716-446655440000", &secret(36));
    check("https://x.net/a?sv=1&sig={}&se=2", &value, &secret(40));
    check("Set-Cookie: {}; Path=/", &format!("sid={value}"), &secret(44));
    let token = |at: usize| replacement(Class::Token, 1, at);
    let host = ["hooks.slack", "com/services"].join(".");
    check(&format!("https://{host}/T0123/B0456/{{}}"), &random(24), &token(24));
    check("https://discord.com/api/webhooks/1234567890/{}", &value, &token(40));
    let person = ["joe", "@", "corp.com"].concat();
    for around in ["mailto:{}", "Email:{}", "user:{};", "<{}>"] {
        check(around, &person, "person1@example.com");
    }
    check("Authorization: Bearer {}", "abcdefghijklmnopqr", "redacted-credential-1");
    check("postgres://u:{}@h/db", "pa#ss", "redacted-password-1");
    check("machine h.x login ada password {}\n", "correcthorse", "redacted-password-1");
    keeps("golang.org/x/tools@v0.1.pre, https://x.y/a:b@c.de, the machine and its password policy");
    let bot = format!("AA{}", random(33));
    check("https://api.telegram.org/bot123456789:{}/getMe", &bot, &token(35));
}

#[test]
fn one_secret_has_one_name_and_another_has_another() {
    let (one, other) = (random(24), random(25));
    let mut redactor = Redactor::new();
    let text = format!("SECRET={one} SECRET={other} Bearer {one}");
    let redacted = redactor.text(&text);
    let names: Vec<&str> = redacted.split([' ', '=']).collect();
    assert_eq!(names[1], names[5]);
    assert_ne!(names[1], names[3]);
    let later = redactor.text(&format!("Bearer {other}"));
    assert_eq!(later, format!("Bearer {}", names[3]));
    let counts = redactor.take_counts();
    assert_eq!(counts.get(&Class::Secret), Some(&2));
    assert_eq!(counts.get(&Class::Credential), Some(&2));
    assert!(!format!("{redactor:?}").contains(&one));
}

#[test]
fn json_stays_json_and_all_else_in_it_as_it_was() {
    let check = |json: &str, expected: &str| {
        let json = JsonText::parse(&json.replace("{}", &random(24))).unwrap();
        let redacted = Redactor::new().json(&json);
        assert_eq!(redacted.as_str(), expected);
        assert_eq!(Redactor::new().json(&redacted), redacted, "twice");
    };
    let name = "redacted-secret-1-xxxxxx";
    check(r#"{ "a" : 1.0e5, "a":-0 }"#, r#"{ "a" : 1.0e5, "a":-0 }"#);
    check(
        r#"{"n": 1.50, "client_secret" : "{}", "x":["\u00e9"]}"#,
        &format!(r#"{{"n": 1.50, "client_secret" : "{name}", "x":["\u00e9"]}}"#),
    );
    check(
        r#"{"command":"curl -H \"X-Api-Key: {}\"\n"}"#,
        &format!(r#"{{"command":"curl -H \"X-Api-Key: {name}\"\n"}}"#),
    );
    check(r#""/home/ada/x""#, r#""/home/user1/x""#);
    check(r#"{"/home/ada/x":7}"#, r#"{"/home/user1/x":7}"#);
    let picture = format!(r#"{{"type":"base64","data":"{}AKIA{}"}}"#, random(300), random(40));
    check(&picture, &picture);
}

#[test]
fn a_session_is_redacted_everywhere_and_twice_is_once() {
    let secret = random(24);
    let text: Arc<str> = format!("TOKEN_SECRET={secret} in /home/ada").into();
    let written = Message::text(Role::User, text.clone()).with_tags([Tag::CompactSummary]);
    let mut message = Message::new(
        Role::Assistant,
        vec![
            ContentBlock::Text(text.clone()),
            ContentBlock::Thinking(Box::new(Thinking {
                text: text.clone(),
                signature: Some("c2ln".into()),
            })),
            ContentBlock::ToolUse(Box::new(ToolUse {
                id: "t1".into(),
                name: "Bash".into(),
                class: crate::ToolClass::Shell,
                input: JsonText::of(&serde_json::json!({"command": &*text})),
            })),
        ],
    );
    message.details.api_call = Some(crate::units::ApiCallId("c1".into()));
    let answer = Message::new(
        Role::User,
        vec![ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: "t1".into(),
            content: vec![ContentBlock::Text(text.clone())],
            is_error: false,
        }))],
    );
    let session = Session::new(SessionParts {
        id: "-home-ada-work".trim_start_matches('-').to_owned(),
        system: Some(text.clone()),
        tools: vec![ToolSchema { name: "Bash".into(), definition: JsonText::string(&text) }],
        messages: vec![Arc::new(message), Arc::new(answer)],
        compactions: vec![RecordedCompaction {
            at: 2,
            trigger: None,
            pre_tokens: None,
            usage: None,
            after: CompactedTo::Replaced(vec![
                Recorded::Edited { message: 1, block: 0, text: text.clone() },
                Recorded::Written(Arc::new(written)),
            ]),
        }],
        ..SessionParts::default()
    })
    .unwrap();
    let mut redactor = Redactor::new();
    let redacted = redactor.session(&session).unwrap();
    assert_eq!(redactor.take_counts().get(&Class::Secret), Some(&8));
    let shown = format!("{redacted:?}");
    assert!(!shown.contains(&secret) && !shown.contains("/home/ada"), "{shown}");
    let again = redactor.session(&redacted).unwrap();
    assert_eq!(format!("{again:?}"), shown);
    assert!(redactor.take_counts().is_empty());
}
