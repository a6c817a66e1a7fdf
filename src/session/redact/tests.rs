//! Shapes of secrets, one per line; the examples are put together so that none stands in the file.

use super::*;
use crate::session::{Role, Tag};

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
    let letter = |at: usize| char::from(letters[at * 7 % letters.len()]);
    (0..length).map(letter).collect()
}

#[test]
fn keys_and_tokens_are_told_by_how_they_begin() {
    for (prefix, least) in found::TOKENS {
        let body = match *prefix {
            "eyJ" => format!("{}.{}.{}", random(20), random(20), random(20)),
            _ => random(*least),
        };
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
    check(
        "export K={}\nnext",
        &key,
        "redacted-token-1-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    );
    keeps("sk-learn-is-a-library-of-methods");
    keeps("eyJ is how a web token begins");
}

#[test]
fn private_keys_headers_and_addresses_are_told_by_what_is_around_them() {
    let body = format!("{}\n{}", random(64), random(64));
    let (begin, end) = (
        ["-----BEGIN", "RSA PRIVATE", "KEY-----"],
        ["-----END", "RSA PRIVATE", "KEY-----"],
    );
    let name = replacement(Class::PrivateKey, 1, body.len());
    check(
        &format!("{}\n{{}}\n{}\n", begin.join(" "), end.join(" ")),
        &body,
        &name,
    );
    check(
        &format!("{}\\n{{}}\\n{}", begin.join(" "), end.join(" ")),
        &random(70),
        &replacement(Class::PrivateKey, 1, 70),
    );
    check(&format!("{}\n{{}}", begin.join(" ")), &body, &name);
    keeps("-----BEGIN PUBLIC KEY-----\nabc1\n-----END PUBLIC KEY-----");
    check(
        "-H 'Authorization: Bearer {}'",
        &random(30),
        "redacted-credential-1-xx",
    );
    check(
        "authorization: Basic {}",
        "dXNlcjpwYXNz",
        "redacted-credential-1",
    );
    check(
        "Authorization: token {}",
        &random(40),
        "redacted-credential-1-xxxxxxxxxxxxxxxxxx",
    );
    keeps("the bearer of this letter; a basic understanding; the bearer authentication");
    check(
        "postgres://app:{}@db.internal:5432/x",
        "hunter2",
        "redacted-password-1",
    );
    check("amqps://u:{}@h", "p@ss", "redacted-password-1");
    keeps("postgres://app:${PASSWORD}@db/x and https://host:8080/a@b and http://u@h.x/");
}

#[test]
fn people_and_their_folders_get_numbers() {
    check(
        "Write to {}, please.",
        &["ada", "@", "lovelace.org"].concat(),
        "person1@example.com",
    );
    keeps("person1@example.com, a@b, @scope/package@1.2.3, git@github.com:a/b, x@localhost");
    check("cd /home/{}/work", "ada", "user1");
    check("open /Users/{}", "ada.l", "user1");
    check("C:\\Users\\{}\\work", "ada", "user1");
    check("\"C:\\\\Users\\\\{}\\\\work\"", "ada", "user1");
    check("/mnt/c/Users/{}/x", "ada", "user1");
    check("projects/-home-{}-work/1.jsonl", "ada", "user1");
    check("file:///home/{}", "ada", "user1");
    keeps("src/home/index.ts, /home/user1/a, /Users/Shared, take-home-pay, /home/$USER/, /home/");
}

#[test]
fn names_that_say_so_hide_what_looks_drawn_by_lot() {
    let value = random(24);
    check("CLIENT_SECRET={}", &value, "redacted-secret-1-xxxxxx");
    check("\"api_key\": \"{}\",", &value, "redacted-secret-1-xxxxxx");
    check(
        "{\\\"apiKey\\\":\\\"{}\\\"}",
        &value,
        "redacted-secret-1-xxxxxx",
    );
    check("--session-token={} -v", &value, "redacted-secret-1-xxxxxx");
    check(
        "password: '{}'",
        "correct-horse-staple",
        "redacted-secret-1",
    );
    check(
        "db_password := \"{}\"",
        "hunter2hunter2",
        "redacted-secret-1",
    );
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
    let picture = format!(
        r#"{{"type":"base64","data":"{}AKIA{}"}}"#,
        random(300),
        random(40)
    );
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
            ContentBlock::Thinking(Thinking {
                text: text.clone(),
                signature: Some("c2ln".into()),
            }),
            ContentBlock::ToolUse(ToolUse {
                id: "t1".into(),
                name: "Bash".into(),
                class: crate::session::ToolClass::Shell,
                input: JsonText::of(&serde_json::json!({"command": &*text})),
            }),
        ],
    );
    message.api_call = Some(crate::units::ApiCallId("c1".into()));
    let answer = Message::new(
        Role::User,
        vec![ContentBlock::ToolResult(ToolResult {
            tool_use_id: "t1".into(),
            content: vec![ContentBlock::Text(text.clone())],
            is_error: false,
        })],
    );
    let session = Session::new(SessionParts {
        id: "-home-ada-work".trim_start_matches('-').to_owned(),
        system: Some(text.clone()),
        tools: vec![ToolSchema {
            name: "Bash".into(),
            definition: JsonText::string(&text),
        }],
        messages: vec![Arc::new(message), Arc::new(answer)],
        compactions: vec![RecordedCompaction {
            at: 2,
            trigger: None,
            pre_tokens: None,
            after: CompactedTo::Replaced(vec![
                Recorded::Edited {
                    message: 1,
                    block: 0,
                    text: text.clone(),
                },
                Recorded::Written(Arc::new(written)),
            ]),
        }],
        ..SessionParts::default()
    })
    .unwrap();
    let mut redactor = Redactor::new();
    let redacted = redactor.session(&session).unwrap();
    assert_eq!(redactor.take_counts().get(&Class::Secret), Some(&8));
    let bytes = |session: &Session| {
        let mut bytes = Vec::new();
        crate::session::native::write(session, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let shown = bytes(&redacted);
    assert!(
        !shown.contains(&secret) && !shown.contains("/home/ada"),
        "{shown}"
    );
    assert_eq!(shown.matches("redacted-secret-1-xxxxxx").count(), 8);
    let again = redactor.session(&redacted).unwrap();
    assert_eq!(bytes(&again), shown);
    assert!(redactor.take_counts().is_empty());
}
