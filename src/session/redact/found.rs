//! Finds secrets by their shape.

use std::ops::Range;

use super::{Class, is_replaced, named};

/// A place in a text, and what was found there.
pub(super) type Found = (Range<usize>, Class);

/// All secrets of a text in order; none overlap. Of two that would, the one that begins first
/// stays, and of those the longer.
pub(super) fn secrets(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    tokens(text, &mut found);
    infixes(text, &mut found);
    hooks(text, &mut found);
    headers(text, &mut found);
    addresses(text, &mut found);
    homes(text, &mut found);
    named::values(text, &mut found);
    found.retain(|(range, _)| !is_replaced(&text[range.clone()]));
    found.sort_by_key(|(range, class)| (range.start, std::cmp::Reverse(range.end), *class));
    let mut end = 0;
    found.retain(|(range, _)| {
        let is_free = range.start >= end && !range.is_empty();
        if is_free {
            end = range.end;
        }
        is_free
    });
    found
}

/// How keys and tokens begin, and the least number of characters that follow. What follows is
/// letters, digits, `_`, `-`, and in those that end with a dot, dots.
pub(super) const TOKENS: &[(&str, usize)] = &[
    ("AGE-SECRET-KEY-1", 40),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ATATT3", 40),
    ("ATBB", 28),
    ("ATCTT3", 40),
    ("EAAA", 56),
    ("GOCSPX-", 24),
    ("NRAK-", 27),
    ("PMAK-", 40),
    ("SG.", 40),
    ("cio", 32),
    ("dapi", 32),
    ("dckr_oat_", 20),
    ("dckr_pat_", 20),
    ("doo_v1_", 40),
    ("dop_v1_", 40),
    ("dor_v1_", 40),
    ("dp.ct.", 40),
    ("dp.pt.", 40),
    ("dp.sa.", 40),
    ("dp.st.", 40),
    ("eyJ", 30),
    ("figd_", 40),
    ("fo1_", 40),
    ("gho_", 30),
    ("ghp_", 30),
    ("ghr_", 30),
    ("ghs_", 30),
    ("ghu_", 30),
    ("github_pat_", 22),
    ("glcbt-", 20),
    ("gldt-", 20),
    ("glft-", 20),
    ("glpat-", 18),
    ("glptt-", 20),
    ("glrt-", 20),
    ("glsa_", 30),
    ("glsoat-", 20),
    ("gsk_", 30),
    ("hf_", 28),
    ("hvb.", 24),
    ("hvs.", 24),
    ("jina_", 40),
    ("lin_api_", 30),
    ("lsv2_pt_", 40),
    ("lsv2_sk_", 40),
    ("npm_", 30),
    ("ntn_", 40),
    ("nvapi-", 30),
    ("ops_eyJ", 100),
    ("phc_", 40),
    ("phx_", 40),
    ("pk_live_", 16),
    ("pplx-", 30),
    ("pscale_pw_", 30),
    ("pscale_tkn_", 30),
    ("pypi-", 50),
    ("r8_", 30),
    ("rk_live_", 16),
    ("rubygems_", 48),
    ("sb_secret_", 24),
    ("sbp_", 40),
    ("secret_", 43),
    ("shpat_", 30),
    ("shpca_", 30),
    ("shppa_", 30),
    ("shpss_", 30),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("sntrys_", 40),
    ("sq0atp-", 22),
    ("sq0csp-", 43),
    ("tskey-", 20),
    ("tvly-", 20),
    ("vck_", 40),
    ("vcp_", 40),
    ("whsec_", 24),
    ("xai-", 30),
    ("xapp-", 20),
    ("xoxa-", 20),
    ("xoxb-", 20),
    ("xoxc-", 20),
    ("xoxd-", 20),
    ("xoxe-", 20),
    ("xoxp-", 20),
    ("xoxr-", 20),
    ("xoxs-", 20),
    ("ya29.", 30),
];

fn tokens(text: &str, found: &mut Vec<Found>) {
    for (prefix, least) in TOKENS {
        for (start, _) in text.match_indices(prefix) {
            if text[..start].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &text[start + prefix.len()..];
            let has_dots = prefix.ends_with('.') || *prefix == "eyJ";
            let length = run(rest, |c| is_token(c) || (c == '.' && has_dots));
            let body = rest[..length].trim_end_matches('.');
            // A web token has three parts; other words that begin so have none.
            let is_whole = match *prefix {
                "eyJ" => body.matches('.').count() >= 2,
                // Data in base64 may hold these letters, and goes on.
                "AKIA" | "ASIA" => {
                    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
                    body.len() == *least && body.chars().all(is_part)
                }
                // Names in programs begin so too.
                "cio" | "secret_" => {
                    body.len() == *least && body.chars().all(|c| c.is_ascii_alphanumeric())
                }
                "dapi" => body.len() == *least && body.chars().all(|c| c.is_ascii_hexdigit()),
                _ => true,
            };
            if body.len() >= *least && is_whole && body.contains(|c: char| c.is_ascii_digit()) {
                found.push((start..start + prefix.len() + body.len(), Class::Token));
            }
        }
    }
}

/// Tokens that are told by what stands within them.
fn infixes(text: &str, found: &mut Vec<Found>) {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    for (at, word) in text.match_indices(".atlasv1.") {
        let before = at - text[..at].trim_end_matches(is_letter).len();
        let after = run(&text[at + word.len()..], is_token);
        if before == 14 && after >= 60 {
            found.push((at - before..at + word.len() + after, Class::Token));
        }
    }
    for (at, prefix) in text.match_indices("pat") {
        let rest = &text[at + prefix.len()..];
        let name = run(rest, is_letter);
        let Some(after) = rest[name..].strip_prefix('.') else {
            continue;
        };
        let secret = run(after, |c| c.is_ascii_hexdigit());
        if name == 14 && secret == 64 && !text[..at].ends_with(is_token) {
            found.push((at..at + prefix.len() + name + 1 + secret, Class::Token));
        }
    }
}

/// Addresses to which whoever knows them may post, and tokens of bots: what follows the last `/` of
/// them, or the colon.
fn hooks(text: &str, found: &mut Vec<Found>) {
    for (host, parts) in [
        ("hooks.slack.com/services/", 3),
        ("discord.com/api/webhooks/", 2),
        ("discordapp.com/api/webhooks/", 2),
    ] {
        for (at, _) in text.match_indices(host) {
            let start = at + host.len();
            let length = run(&text[start..], |c| is_token(c) || c == '/');
            let path = text[start..start + length].trim_end_matches('/');
            if let Some((before, secret)) = path.rsplit_once('/')
                && before.matches('/').count() + 2 == parts
                && secret.len() >= 20
            {
                let start = start + before.len() + 1;
                found.push((start..start + secret.len(), Class::Token));
            }
        }
    }
    for (at, _) in text.match_indices(":AA") {
        let bot = text[..at].trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = at - bot.len();
        let secret = run(&text[at + 1..], is_token);
        if (8..=10).contains(&digits) && secret == 35 {
            found.push((at + 1..at + 1 + secret, Class::Token));
        }
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The length in bytes of what `is_part` holds for, from the start.
pub(super) fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// The inside of a private-key block; one that was cut goes to the end of the text.
fn private_keys(text: &str, found: &mut Vec<Found>) {
    for (start, _) in text.match_indices("-----BEGIN ") {
        let rest = &text[start + 11..];
        let Some(title) = rest.find("-----") else {
            continue;
        };
        if title > 60 || !rest[..title].contains("PRIVATE KEY") {
            continue;
        }
        let from = start + 11 + title + 5;
        let to = text[from..]
            .find("-----END")
            .map_or(text.len(), |at| from + at);
        let body = &text[from..to];
        // Line ends stay, those that are escaped too.
        let is_space = |c: char| c.is_whitespace() || c == '\\';
        let mut inner = body.trim_matches(is_space);
        if body
            .trim_start_matches(char::is_whitespace)
            .starts_with("\\n")
        {
            inner = inner.strip_prefix('n').unwrap_or(inner);
        }
        if body.trim_end_matches(char::is_whitespace).ends_with("\\n") {
            inner = inner.strip_suffix('n').unwrap_or(inner);
            inner = inner.trim_end_matches(is_space);
        }
        let offset = inner.as_ptr().addr() - text.as_ptr().addr();
        found.push((offset..offset + inner.len(), Class::PrivateKey));
    }
}

/// What a header that authorises a request holds.
fn headers(text: &str, found: &mut Vec<Found>) {
    let lower = text.to_ascii_lowercase();
    for (scheme, least) in [("bearer ", 12), ("basic ", 8), ("token ", 16)] {
        for (at, _) in lower.match_indices(scheme) {
            let before = &lower[lower.floor_char_boundary(at.saturating_sub(24))..at];
            // The other words stand in many sentences.
            if scheme != "bearer " && !before.contains("authorization") {
                continue;
            }
            if before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            let start = at + scheme.len();
            let is_part = |c: char| c.is_ascii_alphanumeric() || "._~+/=-".contains(c);
            let length = run(&text[start..], is_part);
            let value = text[start..start + length].trim_end_matches('.');
            let is_random = scheme != "bearer "
                || before.contains("authorization")
                || value.contains(|c: char| c.is_ascii_digit());
            if value.len() >= least && is_random {
                found.push((start..start + value.len(), Class::Credential));
            }
        }
    }
}

/// Passwords in addresses, and e-mail addresses.
fn addresses(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let length = run(rest, |c| !c.is_whitespace() && !"/\"'`<>\\?".contains(c));
        let Some((user, _)) = rest[..length].rsplit_once('@') else {
            continue;
        };
        let Some((name, password)) = user.split_once(':') else {
            continue;
        };
        let is_variable = password.starts_with(['$', '{', '<', '*', '%']);
        if !password.is_empty() && !is_variable {
            let start = at + 3 + name.len() + 1;
            found.push((start..start + password.len(), Class::Password));
        }
    }
    // The file in which programs look up passwords: `machine h login u password p`.
    for (at, word) in text.match_indices("password ") {
        let before = &text[text.floor_char_boundary(at.saturating_sub(200))..at];
        let login = before.find("machine ").map(|at| &before[at..]);
        if login.is_some_and(|login| login.contains("login ")) {
            let start = at + word.len();
            let length = run(&text[start..], |c| {
                !c.is_whitespace() && !"\"'`\\".contains(c)
            });
            found.push((start..start + length, Class::Password));
        }
    }
    for (at, _) in text.match_indices('@') {
        let is_local = |c: char| c.is_ascii_alphanumeric() || "._%+-".contains(c);
        let before = text[..at].trim_end_matches(is_local).len();
        let local = text[before..at].trim_start_matches(['.', '-', '%', '+']);
        let start = at - local.len();
        let rest = &text[at + 1..];
        let length = run(rest, |c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        let domain = rest[..length].trim_end_matches(['.', '-']);
        let is_named = domain.rsplit_once('.').is_some_and(|(host, top)| {
            let is_word = top.len() >= 2 && top.chars().all(|c| c.is_ascii_alphabetic());
            !host.is_empty() && is_word
        });
        // Addresses of these names belong to nobody.
        let is_example = ["example.com", "example.org", "example.net"].contains(&domain);
        // `git@host:path` is no person, nor is who stands in an address or a path.
        let is_part = |c: char| !c.is_whitespace() && !"\"'`<>()[]{},;".contains(c);
        let word = &text[text[..start].trim_end_matches(is_part).len()..start];
        let is_service = local == "git" || word.contains("://") || word.ends_with('/');
        if !local.is_empty() && is_named && !is_example && !is_service {
            found.push((start..at + 1 + domain.len(), Class::Email));
        }
    }
}

/// Names of home folders that are nobody's.
const NOBODY: &[&str] = &["Shared", "Public", "Default"];

/// The names of home folders, in paths and in names made of paths.
fn homes(text: &str, found: &mut Vec<Found>) {
    for folder in ["home", "Users"] {
        for (at, _) in text.match_indices(folder) {
            let (before, rest) = (&text[..at], &text[at + folder.len()..]);
            let Some(separator) = rest.chars().next().filter(|c| "/\\-".contains(*c)) else {
                continue;
            };
            let skipped = run(rest, |c| c == separator);
            // Separators are doubled where a text is quoted in another.
            let root = before.trim_end_matches(separator);
            if root.len() == before.len() || !is_root(root, separator) {
                continue;
            }
            let start = at + folder.len() + skipped;
            let is_part = |c: char| {
                c.is_ascii_alphanumeric() || c == '_' || (separator != '-' && ".-".contains(c))
            };
            let name = &text[start..start + run(&text[start..], is_part)];
            let name = name.trim_end_matches('.');
            let number = name.strip_prefix("user").unwrap_or("x");
            let is_replaced = number.chars().all(|c| c.is_ascii_digit());
            let is_slug = separator == '-';
            let goes_on = text[start + name.len()..].starts_with('-');
            if !name.is_empty() && !is_replaced && !NOBODY.contains(&name) && (!is_slug || goes_on)
            {
                found.push((start..start + name.len(), Class::Home));
            }
        }
    }
}

/// Whether what stands before `/home` or `\Users` is the beginning of a path.
fn is_root(before: &str, separator: char) -> bool {
    if separator == '-' {
        return !before.ends_with(|c: char| c.is_ascii_alphanumeric());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-~".contains(c);
    let begins = |before: &str| !before.ends_with(is_name);
    // A drive in a shell of Windows, `/c/Users`, or of its Linux, `/mnt/c/Users`.
    let drive = before.strip_suffix(|c: char| c.is_ascii_alphabetic());
    let is_drive = drive.is_some_and(|root| {
        ["/mnt/", "/cygdrive/", "/"].iter().any(|mount| {
            let before = root.strip_suffix(mount);
            before.is_some_and(|before| begins(before) && !before.ends_with(['/', ':']))
        })
    });
    let is_mount = ["/var", "/usr", "/export"].iter().any(|mount| {
        let before = before.strip_suffix(mount);
        before.is_some_and(begins)
    });
    // A Linux seen from Windows: `\\wsl$\Ubuntu\home`, `wsl+Ubuntu/home`.
    let distribution = before.trim_end_matches(|c: char| is_name(c) && c != '~');
    let host = distribution.trim_end_matches(['/', '\\', '+']);
    let is_linux = host.len() < distribution.len()
        && ["wsl$", "wsl.localhost", "wsl"].iter().any(|name| {
            let before = host.strip_suffix(name);
            before.is_some_and(|before| before.ends_with(['/', '\\']))
        });
    is_drive || is_mount || is_linux || begins(before)
}
