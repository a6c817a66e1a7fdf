//! A page under construction: markup that stands in the code, and texts that are escaped.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::plot::{self, Scene};
use crate::report::{RenderError, escape};

/// A page. What is written by [`Page::raw`] is a literal of the code, by its type.
#[derive(Debug)]
pub(super) struct Page {
    out: String,
    script: &'static str,
}

impl Page {
    /// Begins a page with this style, which ends with this script.
    pub(super) fn new(title: &str, style: &'static str, script: &'static str) -> Self {
        let mut page = Self {
            out: String::new(),
            script,
        };
        page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-");
        page.out.push_str(&hash(style));
        page.raw("'; script-src 'sha256-");
        page.out.push_str(&hash(script));
        page.raw("'; base-uri 'none'; form-action 'none'\">\n");
        page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        page.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
        page.text(title);
        page.raw("</title>\n<style>");
        page.raw(style);
        page.raw("</style>\n</head>\n<body>\n");
        page
    }

    /// Writes markup.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Writes a text, from wherever: nothing in it is markup, in an element or an attribute.
    pub(super) fn text(&mut self, text: &str) {
        for c in escape::plain(text).chars() {
            match c {
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '&' => self.out.push_str("&amp;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                c => self.out.push(c),
            }
        }
    }

    /// Writes a strategy's name: it breaks before its knobs, and not within a number.
    pub(super) fn name(&mut self, name: &str) {
        for (at, part) in name.split_inclusive(['[', '.', '=']).enumerate() {
            self.raw(if at > 0 { "<wbr>" } else { "" });
            self.text(part);
        }
    }

    /// Writes sentences: what stands between two backticks is set as code.
    pub(super) fn prose(&mut self, text: &str) {
        let parts: Vec<&str> = text.split('`').collect();
        let is_paired = parts.len() % 2 == 1;
        for (at, part) in parts.iter().enumerate() {
            match (is_paired, at % 2) {
                (true, 1) => {
                    self.raw("<code>");
                    self.text(part);
                    self.raw("</code>");
                }
                (true, _) => self.text(part),
                (false, _) => {
                    self.raw(if at > 0 { "`" } else { "" });
                    self.text(part);
                }
            }
        }
    }

    /// Writes a paragraph.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.raw("<p>");
        self.prose(text);
        self.raw("</p>\n");
    }

    /// Writes data for the script. A browser reads it as text, and no text ends it early.
    pub(super) fn data(&mut self, data: &impl Serialize) -> Result<(), RenderError> {
        let json = serde_json::to_string(data).map_err(RenderError::Json)?;
        let json = escape::json(&json).replace('<', "\\u003c");
        self.raw("<script type=\"application/json\">");
        self.out.push_str(&json);
        self.raw("</script>\n");
        Ok(())
    }

    /// Draws a picture into the page; its colours follow the page's by rules of the style.
    pub(super) fn picture(&mut self, scene: &Scene) -> Result<(), RenderError> {
        let svg = plot::svg(scene)?;
        let inner = svg.strip_prefix("<svg ").unwrap_or(&svg);
        self.raw("<figure><svg role=\"img\" aria-label=\"");
        self.text(&scene.title);
        self.raw("\" ");
        self.out.push_str(inner.trim_end());
        self.raw("</figure>\n");
        Ok(())
    }

    /// Ends the page.
    pub(super) fn finish(mut self) -> String {
        self.raw("<script>");
        self.raw(self.script);
        self.raw("</script>\n</body>\n</html>\n");
        self.out
    }
}

/// SHA-256 in Base64, as a Content-Security-Policy names a script.
fn hash(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text.as_bytes());
    let mut out = String::new();
    for three in digest.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_markup() {
        let mut page = Page::new("t", "", "");
        page.out.clear();
        page.text("<img src=x onerror=\"alert('&')\">\u{202e}");
        assert_eq!(
            page.out,
            "&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;\\u{202e}"
        );
        for (text, markup) in [
            ("under `a<b`, and", "under <code>a&lt;b</code>, and"),
            ("a ` alone", "a ` alone"),
        ] {
            page.out.clear();
            page.prose(text);
            assert_eq!(page.out, markup);
        }
        page.out.clear();
        page.data(&["</script><script>alert(1)</script><!--"])
            .unwrap();
        assert_eq!(page.out.matches('<').count(), 2, "{}", page.out);
    }

    #[test]
    fn a_script_is_named_by_its_hash() {
        // FIPS 180-2, the empty text and `abc`.
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(hash("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
