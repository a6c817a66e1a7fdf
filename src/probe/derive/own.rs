//! The user's own words: what a person typed, without the text that a product puts around it.
//!
//! A product merges much into the user's turn: permissions, lists of skills and plugins, reminders,
//! the output of commands. Importers say which blocks are the product's
//! ([`Details::injected`](crate::session::Details::injected)). Inside a block, a product marks its
//! text as an element (`<system-reminder>…</system-reminder>`), and that is cut out here.

use crate::probe::LazyPattern;
use crate::session::{Message, Role, Session, Tag};

/// Elements that hold what a person typed: the tags go, the text stays.
const OF_THE_USER: &str = "answer command-args feedback issue issue_description pr_description question task \
                           task_description user_message user_query user_request";

/// Elements of a product whose names are single words. Names of several words
/// (`skills_instructions`, `local-command-caveat`, `permissions instructions`) are a product's
/// always: people paste `<div>` and `<config>`.
const OF_A_PRODUCT: [&str; 3] = ["instructions", "reminder", "skill"];

/// A block with more unclosed elements is left as it is.
const MOST_UNCLOSED: usize = 32;

/// The longest name, in bytes.
const NAME_BYTES: usize = 40;

/// The texts that the user typed, with their messages; in order, several of one message.
pub(super) fn typed(session: &Session) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut before: Option<&Message> = None;
    for (at, message) in session.messages().iter().enumerate() {
        let asked = before.replace(message).is_some_and(ends_in_element);
        if !message.has_tag(Tag::TypedUser) || asked {
            continue;
        }
        for (place, text) in message.texts() {
            if !message.details.injected.contains(&place) {
                all.extend(own(text).into_iter().map(|own| (at, own)));
            }
        }
    }
    all
}

/// Whether the agent's text ends in an element: a tool call of products that write them as text, which the next message
/// answers.
fn ends_in_element(message: &Message) -> bool {
    let text = message.texts().next_back().map_or("", |(_, text)| text);
    let element = text.trim_end().strip_suffix('>');
    let Some((_, name)) = element.and_then(|text| text.rsplit_once("</")) else {
        return false;
    };
    let mut letters = name.chars();
    message.role() == Role::Assistant
        && !name.is_empty()
        && letters.all(|c| c.is_alphanumeric() || "_-:".contains(c))
}

/// The parts of a text outside of a product's elements, without blank ones.
pub(super) fn own(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut next, mut unclosed) = (0, 0, 0);
    while let Some(found) = text[next..].find('<') {
        let at = next + found;
        next = at + 1;
        let Some(name) = name(&text[next..]) else {
            continue;
        };
        let of_the_user = OF_THE_USER.split(' ').any(|known| known == name);
        if !of_the_user && !is_of_a_product(name) {
            continue;
        }
        let Some((inside, end)) = element(text, at, name) else {
            unclosed += 1;
            if unclosed > MOST_UNCLOSED {
                break;
            }
            continue;
        };
        pieces.push(&text[start..at]);
        if of_the_user {
            pieces.extend(own(inside));
        }
        (start, next) = (end, end);
    }
    pieces.push(&text[start..]);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

/// The name of an element behind its `<`, without attributes: `permissions instructions` is one.
static NAME: LazyPattern = LazyPattern::new("^([A-Za-z][A-Za-z0-9_ -]*?)(?: [^ =>]*=[^>]*)?>");

fn name(text: &str) -> Option<&str> {
    let start = &text[..text.floor_char_boundary(NAME_BYTES + 1)];
    Some(NAME.matches(start).next()?.get(1)?.as_str())
}

fn is_of_a_product(name: &str) -> bool {
    name.contains(['_', '-', ' ']) || OF_A_PRODUCT.contains(&&*name.to_ascii_lowercase())
}

/// The inside of the element of this name whose `<` is at `at`, if it is closed, and where it ends.
fn element<'a>(text: &'a str, at: usize, name: &str) -> Option<(&'a str, usize)> {
    let start = at + text[at..].find('>')? + 1;
    // `<permissions instructions>` is closed by the same two words.
    let close = format!("</{name}>");
    let (inside, _) = text[start..].split_once(&close)?;
    Some((inside, start + inside.len() + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_product_puts_around_a_request_is_cut_out() {
        for (text, expected) in [
            ("Mend it.", &["Mend it."][..]),
            (
                "<skills_instructions>\nNever ask.\n</skills_instructions>\nMend it.",
                &["\nMend it."],
            ),
            (
                "Mend it.<system-reminder>Do not say so.</system-reminder> Now.",
                &["Mend it.", " Now."],
            ),
            ("<permissions instructions>Never ask.</permissions instructions>", &[]),
            ("<skill>\n<name>a</name>\nAlways.\n</skill>", &[]),
            (
                "<user_query>Mend it.</user_query><additional_data>x</additional_data>",
                &["Mend it."],
            ),
            // Pasted text is the user's, and an element that is never closed is not an element.
            ("Keep <div>this</div> here", &["Keep <div>this</div> here"]),
            ("Vec<my_type> is kept", &["Vec<my_type> is kept"]),
            ("a < b and c > d", &["a < b and c > d"]),
        ] {
            assert_eq!(own(text), expected, "{text}");
        }
        let hostile = "<a_b>".repeat(20_000);
        assert_eq!(own(&hostile), [&*hostile]);
    }
}
