//! Files in base64 that blocks of unknown kinds hold: a model reads them as pages and pictures.

use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use super::picture;
use crate::tokens::Picture;
use crate::wire::images::data_url;
use crate::wire::json_bytes::{Mark, marks};

/// Shorter texts are left as they are.
const LEAST_BYTES: usize = 400;

/// How files begin whose data is no text: PDF, PNG, GIF, JPEG, RIFF (WebP, WAV), ZIP (Office), MP3, Ogg.
const BEGINNINGS: [&[u8]; 8] =
    [b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"PK\x03\x04", b"ID3", b"OggS"];

/// Compressed parts of a PDF are searched for pages up to so many times the file's size.
const MOST_INFLATED: u64 = 20;

/// Providers take no more pages in one file: Gemini takes 1,000, others fewer.
const MOST_PAGES: usize = 1_000;

/// The JSON of a block without the data of files; `None` if it holds none.
pub(super) fn without_data(json: &str) -> Option<Arc<str>> {
    let mut text = String::new();
    let mut from = 0;
    for data in data(json) {
        text.push_str(&json[from..data.start]);
        from = data.end;
    }
    (from > 0).then(|| (text + &json[from..]).into())
}

/// The files, as counters see them: a picture, or each page of a PDF as one of unknown size, which counts 1,600
/// tokens. Anthropic's documentation ("PDF support") gives 1,500 to 3,000 tokens for a page.
pub(super) fn pictures(json: &str) -> Vec<Picture> {
    let files = data(json).map(|data| {
        let bytes = (data.end - data.start) as u64;
        let text = &json[data];
        let base64 = data_url(text).map_or(text, |(_, base64)| base64);
        let file = picture::decoded(base64, usize::MAX);
        let first = Picture { pixels: picture::pixels(&file), bytes };
        let more = pages(&file).saturating_sub(1);
        std::iter::once(first).chain(std::iter::repeat_n(Picture::default(), more))
    });
    files.flatten().collect()
}

/// Where the data of files stands in JSON, without the quotes.
fn data(json: &str) -> impl Iterator<Item = Range<usize>> {
    let texts = marks(json.as_bytes()).filter_map(|(at, mark)| match mark {
        Mark::Text(Some(end)) => Some(at + 1..end - 1),
        _ => None,
    });
    texts.filter(|text| text.len() >= LEAST_BYTES && is_file(&json[text.clone()]))
}

fn is_file(text: &str) -> bool {
    let head = picture::decoded(text, 16);
    data_url(text).is_some() || BEGINNINGS.iter().any(|beginning| head.starts_with(beginning))
}

/// The pages of a PDF that its page objects show, which may be compressed.
fn pages(file: &[u8]) -> usize {
    if !file.starts_with(b"%PDF-") {
        return 0;
    }
    let mut pages = page_objects(file);
    let mut left = MOST_INFLATED * file.len() as u64;
    let mut rest = file;
    while let Some(at) = memmem::find(rest, b"/ObjStm")
        && let Some(to) = memmem::find(&rest[at..], b"stream")
        && left > 0
    {
        rest = rest[at + to + b"stream".len()..].trim_ascii_start();
        let mut decoder = ZlibDecoder::new(rest);
        let mut objects = Vec::new();
        // A stream that is cut has the objects before the cut.
        drop(decoder.by_ref().take(left).read_to_end(&mut objects));
        left = left.saturating_sub(objects.len() as u64);
        pages += page_objects(&objects);
        let read = usize::try_from(decoder.total_in()).unwrap_or(usize::MAX);
        rest = rest.get(read..).unwrap_or_default();
    }
    pages.min(MOST_PAGES)
}

fn page_objects(bytes: &[u8]) -> usize {
    let pages = memmem::find_iter(bytes, b"/Page").filter(|at| {
        !bytes.get(at + 5).is_some_and(u8::is_ascii_alphabetic)
            && bytes[..*at].trim_ascii_end().ends_with(b"/Type")
    });
    pages.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In base64, without the rest at its end.
    fn base64(bytes: &[u8]) -> String {
        let letters: Vec<char> =
            ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
        let of = |three: &[u8]| {
            let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|by| letters[bits >> by & 63])
        };
        bytes.as_chunks::<3>().0.iter().flat_map(|three| of(three)).collect()
    }

    #[test]
    fn files_are_counted_by_pages_and_pixels_and_not_as_text() {
        let mut pdf =
            b"%PDF-1.4 << /Type /Pages /Count 2 >> << /Type /Page >> << /Type/Page/X 1 >> "
                .to_vec();
        pdf.resize(600, b' ');
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x02\0".to_vec();
        png.resize(600, 0);
        let json = format!(
            r#"{{"type":"document","title":"a \"b\"","source":{{"data":"{}"}},"more":"data:image/png;base64,{}"}}"#,
            base64(&pdf),
            base64(&png)
        );
        let expected = r#"{"type":"document","title":"a \"b\"","source":{"data":""},"more":""}"#;
        assert_eq!(without_data(&json).as_deref(), Some(expected));
        let pixels: Vec<_> = pictures(&json).iter().map(|it| it.pixels).collect();
        assert_eq!(pixels, [None, None, crate::tokens::Pixels::new(256, 512)]);
        let encrypted = format!(r#"{{"type":"redacted_thinking","data":"{}"}}"#, "x".repeat(600));
        assert_eq!(without_data(&encrypted), None);
        assert_eq!(pictures(&encrypted), []);
    }
}
