//! Templates, and how texts are escaped in them.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::{RenderError, display, escape};

const TEMPLATES: [(&str, &str); 8] = [
    ("page.html", include_str!("html/page.html")),
    ("macros.html", include_str!("html/macros.html")),
    ("run.html", include_str!("html/run.html")),
    ("sweep.html", include_str!("html/sweep.html")),
    ("macros.md.j2", include_str!("markdown/macros.md.j2")),
    ("full.md.j2", include_str!("markdown/full.md.j2")),
    ("comment.md.j2", include_str!("markdown/comment.md.j2")),
    ("junit.xml.j2", include_str!("junit.xml.j2")),
];

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Fills a template. Every value is escaped, but for those that the template marks as safe.
pub(super) fn render(template: &str, page: impl Serialize) -> Result<String, RenderError> {
    filled(template, page).map_err(|error| RenderError::Template(error.to_string()))
}

fn filled(template: &str, page: impl Serialize) -> Result<String, Error> {
    let mut templates = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    templates.set_syntax(syntax.keep_trailing_newline(true).build()?);
    // The text of a macro is escaped once, in every format.
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_formatter(|out, state, value| {
        let text = value.to_string();
        Ok(out.write_str(&if value.is_safe() {
            text
        } else if state.name().contains(".xml") {
            escape::xml(&text)
        } else if state.name().ends_with(".md.j2") {
            escape::markdown(&text)
        } else {
            escaped(&text)
        })?)
    });
    templates.add_filter("name", name);
    templates.add_filter("prose", prose);
    for (name, text) in TEMPLATES {
        templates.add_template(name, text)?;
    }
    templates.get_template(template)?.render(context! {
        style => STYLE,
        style_hash => hash(STYLE),
        script => SCRIPT,
        script_hash => hash(SCRIPT),
        page => Serde(page),
    })
}

/// Escapes a text, so that no part of it is markup in an element or an attribute of a page.
fn escaped(text: &str) -> String {
    escape::xml(text).replace("&apos;", "&#39;")
}

/// A strategy's name: it breaks before its knobs, and not within a number.
fn name(name: &str) -> Value {
    let parts = name.split_inclusive(['[', '.', '=', '_']).map(escaped);
    Value::from_safe_string(display::joined(parts, "<wbr>"))
}

/// Sentences: the words between two backticks are set as code.
fn prose(text: &str) -> Value {
    let text = escaped(text);
    let paired = text.matches('`').count().is_multiple_of(2);
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        out.push_str(match (paired, at) {
            (_, 0) => "",
            (true, at) if at % 2 == 1 => "<code>",
            (true, _) => "</code>",
            (false, _) => "`",
        });
        out.push_str(part);
    }
    Value::from_safe_string(out)
}

/// Rows as numbers of texts: a text that many rows hold is in the page once.
#[derive(Debug, Default, Serialize)]
pub(super) struct InternedRows {
    texts: Vec<String>,
    rows: Vec<Vec<usize>>,
    #[serde(skip)]
    known: BTreeMap<String, usize>,
}

impl InternedRows {
    /// The rows as data for the script.
    pub(super) fn data(rows: impl Iterator<Item = Vec<String>>) -> Result<String, RenderError> {
        let mut packed = Self::default();
        for row in rows {
            let numbers = row.into_iter().map(|text| packed.number(text)).collect();
            packed.rows.push(numbers);
        }
        data(&packed)
    }

    fn number(&mut self, text: String) -> usize {
        let next = self.texts.len();
        let number = *self.known.entry(text.clone()).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }
}

/// Data for the script: JSON, deflated, in Base64. A browser reads it as text, and no text ends it early.
pub(super) fn data(value: &impl Serialize) -> Result<String, RenderError> {
    let json = serde_json::to_string(value).map_err(RenderError::Json)?;
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = deflated.write_all(escape::json(&json).as_bytes());
    let deflated = written.and_then(|()| deflated.finish());
    Ok(BASE64_STANDARD.encode(deflated.map_err(|error| RenderError::Template(error.to_string()))?))
}

/// SHA-256 in Base64, as a Content-Security-Policy names a script.
fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// The data as the script reads it.
#[cfg(test)]
pub(super) fn inflated(data: &str) -> serde_json::Value {
    let bytes = BASE64_STANDARD.decode(data).unwrap();
    serde_json::from_reader(flate2::read::DeflateDecoder::new(&bytes[..])).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_markup() {
        assert_eq!(
            escaped("<img src=x onerror=\"alert('&')\">\u{202e}"),
            "&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;\\u{202e}"
        );
        for (text, markup) in
            [("under `a<b`, and", "under <code>a&lt;b</code>, and"), ("a ` alone", "a ` alone")]
        {
            assert_eq!(prose(text).to_string(), markup);
        }
    }

    #[test]
    fn data_is_one_word_and_holds_what_was_recorded() {
        for text in ["", "a", "</script><script>alert(1)</script><!--"] {
            let rows = [vec![text.to_owned(), "b".to_owned()]];
            let data = InternedRows::data(rows.into_iter()).unwrap();
            assert!(data.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c)));
            let read = inflated(&data);
            assert_eq!(read["texts"], serde_json::json!([text, "b"]));
        }
    }

    #[test]
    fn a_script_is_named_by_its_hash() {
        // FIPS 180-2, the empty text and `abc`.
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(hash("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
