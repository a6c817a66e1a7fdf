//! Width and height of pictures, read from the first bytes of their data.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Image;
use crate::tokens::{Picture, Pixels};
use crate::wire::images::data_url;

/// A JPEG's size may come after a thumbnail and other notes: the number of bytes that are searched.
const HEAD: usize = 256 << 10;

/// The keys of a source that say how large its picture is.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PictureKeys<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    width: Option<u32>,
    height: Option<u32>,
    bytes: Option<u64>,
}

/// A picture's size in pixels and bytes.
///
/// A source of type `image-size` declares `width`, `height` and `bytes`, and holds no data.
pub(super) fn of(image: &Image) -> Picture {
    let source = image.source.as_str();
    let whole = Picture { pixels: None, bytes: source.len() as u64 };
    let Ok(keys) = serde_json::from_str::<PictureKeys<'_>>(source) else {
        return whole;
    };
    if keys.r#type.as_deref() == Some("image-size") {
        let sides = keys.width.zip(keys.height);
        return Picture {
            pixels: sides.and_then(|(width, height)| Pixels::new(width, height)),
            bytes: keys.bytes.unwrap_or_default(),
        };
    }
    let Some(sent) = keys.data.or(keys.url) else {
        return whole;
    };
    let data = data_url(&sent).map_or(&*sent, |(_, data)| data);
    Picture { pixels: pixels(&decoded(data, HEAD)), bytes: sent.len() as u64 }
}

/// The first bytes of base64 data, at most so many, up to what is none.
pub(super) fn decoded(data: &str, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for letter in data.bytes().take(most.div_ceil(3).saturating_mul(4)) {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' => continue,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held).to_le_bytes()[0]);
        }
    }
    bytes
}

/// The size that the head of a PNG, GIF, WebP or JPEG says.
pub(super) fn pixels(head: &[u8]) -> Option<Pixels> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") && head.get(12..16)? == b"IHDR" {
        return Pixels::new(big(head.get(16..20)?), big(head.get(20..24)?));
    }
    if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        return Pixels::new(little(head.get(6..8)?), little(head.get(8..10)?));
    }
    if head.starts_with(b"RIFF") && head.get(8..12)? == b"WEBP" {
        return webp(head);
    }
    head.starts_with(b"\xff\xd8").then(|| jpeg(head)).flatten()
}

fn webp(head: &[u8]) -> Option<Pixels> {
    match head.get(12..16)? {
        b"VP8 " if head.get(23..26)? == b"\x9d\x01\x2a" => {
            let side = |at: usize| Some(little(head.get(at..at + 2)?) & 0x3fff);
            Pixels::new(side(26)?, side(28)?)
        }
        b"VP8L" if head.get(20) == Some(&0x2f) => {
            let bits = little(head.get(21..25)?);
            Pixels::new((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        b"VP8X" => Pixels::new(little(head.get(24..27)?) + 1, little(head.get(27..30)?) + 1),
        _ => None,
    }
}

/// A JPEG is a list of segments; the frame's says the size.
fn jpeg(head: &[u8]) -> Option<Pixels> {
    let mut at = 2;
    loop {
        // A marker may be filled up in front.
        while head.get(at)? == &0xff && head.get(at + 1)? == &0xff {
            at += 1;
        }
        let [0xff, marker] = *head.get(at..at + 2)? else {
            return None;
        };
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Pixels::new(big(head.get(at + 7..at + 9)?), big(head.get(at + 5..at + 7)?));
        }
        at += 2 + usize::try_from(big(head.get(at + 2..at + 4)?)).ok()?.max(2);
    }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonText;

    /// The picture of a source.
    fn picture(source: &str) -> Picture {
        of(&Image { source: JsonText::parse(source).unwrap() })
    }

    #[test]
    fn the_size_is_read_from_the_head_of_each_format() {
        let table = [
            // PNG, GIF, WebP lossy, lossless and extended.
            ("iVBORw0KGgoAAAANSUhEUgAABQAAAAMgCAYAAAA=", 1_280, 800),
            ("R0lGODlhQAHwAAAA", 320, 240),
            ("UklGRgAAAABXRUJQVlA4IAAAAAAAAACdASqAAjgEAA==", 640, 1_080),
            ("UklGRgAAAABXRUJQVlA4TAAAAAAvf8KVAAA=", 640, 600),
            ("UklGRgAAAABXRUJQVlA4WAAAAAAAAAAAfwcANwQAAA==", 1_920, 1_080),
            // JPEG: a note, fill bytes, and the frame.
            ("/9j/4AAEAAD////AABEIBDgHgAMB", 1_920, 1_080),
            ("AAAA", 0, 0),
        ];
        for (data, width, height) in table {
            let pixels = Pixels::new(width, height);
            let source = format!(r#"{{"type":"base64","media_type":"image/any","data":"{data}"}}"#);
            let bytes = data.len() as u64;
            assert_eq!(picture(&source), Picture { pixels, bytes }, "{data}");
            let url = format!("data:image/any;base64,{data}");
            let bytes = url.len() as u64;
            let source = format!(r#"{{"type":"url","url":"{url}"}}"#);
            assert_eq!(picture(&source), Picture { pixels, bytes }, "{data}");
        }
    }

    #[test]
    fn a_declared_size_needs_no_data_and_other_sources_have_none() {
        let declared = r#"{"type":"image-size","width":1280,"height":800,"bytes":250000}"#;
        let pixels = Pixels::new(1_280, 800);
        let bytes = 250_000;
        assert_eq!(picture(declared), Picture { pixels, bytes });
        for source in [r#""a.png""#, "{}", r#"{"data":7}"#, r#"{"type":"image-size","width":-1}"#] {
            let expected = Picture { pixels: None, bytes: source.len() as u64 };
            assert_eq!(picture(source), expected, "{source}");
        }
        let address = picture(r#"{"type":"url","url":"https://example.org/a.png"}"#);
        assert_eq!((address.pixels, address.bytes), (None, 25));
    }

    #[test]
    fn cut_data_has_no_size_and_never_panics() {
        for whole in [
            "iVBORw0KGgoAAAANSUhEUgAABQAAAAMgCAYAAAA=",
            "UklGRgAAAABXRUJQVlA4WAAAAAAAAAAAfwcANwQAAA==",
            "/9j/4AAEAAD////AABEIBDgHgAMB",
        ] {
            for end in 0..whole.len() / 2 {
                let source = format!(r#"{{"data":"{}"}}"#, &whole[..end]);
                assert_eq!(picture(&source).pixels, None, "{source}");
            }
        }
    }
}
