//! Text by characters, and scripts that put no space between words: Chinese, Japanese, Korean.
//!
//! A run of characters of such a script is cut into overlapping pairs, as search engines do: 网关端口 holds 网关, 关端
//! and 端口. Text that is repeated verbatim repeats its pairs, wherever it is in a sentence. A run of
//! one character is a word of its own.

/// Whether the character is an ideograph, a kana or a syllable of Hangul.
pub fn is_unspaced(c: char) -> bool {
    let code = u32::from(c);
    // Everything before Hangul Jamo is left out with one comparison.
    code >= 0x1100
        && matches!(code,
            0x1100..=0x11ff                         // Hangul Jamo
            | 0x3005..=0x3007                       // 々〆〇
            | 0x3041..=0x3096 | 0x309d..=0x309f     // Hiragana
            | 0x30a1..=0x30fa | 0x30fc..=0x30ff     // Katakana
            | 0x3131..=0x318e                       // Hangul compatibility Jamo
            | 0x31f0..=0x31ff                       // Katakana extensions
            | 0x3400..=0x4dbf | 0x4e00..=0x9fff     // ideographs
            | 0xa960..=0xa97c | 0xac00..=0xd7fb     // Hangul
            | 0xf900..=0xfaff                       // compatibility ideographs
            | 0xff66..=0xff9d | 0xffa0..=0xffdc     // half-width forms
            | 0x2_0000..=0x3_ffff) // ideographs of the higher planes
}

/// Whether the character ends a sentence of such a script.
pub fn ends_sentence(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '｡' | '．')
}

/// Whether the character ends a clause of such a script, or encloses one.
pub fn ends_clause(c: char) -> bool {
    "，、；：（）「」『』《》【】".contains(c)
}

/// The end of the run of unspaced characters that starts at the byte `from`.
pub fn run_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len())
}

/// The words of a run of unspaced characters, each with the byte of `run` at which it starts.
pub fn pairs(run: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = run.char_indices().map(|(at, _)| at);
    let single = run.chars().nth(1).is_none() && !run.is_empty();
    starts
        .zip(run.char_indices().skip(1).map(|(at, c)| at + c.len_utf8()))
        .map(|(from, to)| (from, &run[from..to]))
        .chain(single.then_some((0, run)))
}

/// The beginning of a text: at most so many characters.
pub fn first_chars(text: &str, most: usize) -> &str {
    // Most texts are shorter, or ASCII.
    match text.get(..most) {
        Some(bytes) if bytes.is_ascii() => return bytes,
        None if text.len() <= most => return text,
        _ => {}
    }
    let end = text.char_indices().nth(most);
    end.map_or(text, |(end, _)| &text[..end])
}

/// The beginning of a text: at most so many characters, and a mark where there are more.
pub fn shortened(text: &str, most: usize) -> String {
    let first = first_chars(text, most);
    let mark = if first.len() < text.len() { "…" } else { "" };
    format!("{first}{mark}")
}

/// About how many words a text has: two unspaced characters make one, and so does each run without
/// white space that holds others.
pub fn word_count(text: &str) -> usize {
    let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
    unspaced.div_ceil(2) + text.split_whitespace().filter(|word| word.contains(is_spaced)).count()
}

/// Whether words of such characters are set apart by white space.
fn is_spaced(c: char) -> bool {
    !is_unspaced(c) && !ends_sentence(c) && !ends_clause(c)
}

/// How many letters of each script a text has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Letters([u64; 7]);

/// A script is used if it has at least this share of the letters, in percent,
const USED: u64 = 20;

/// and it is absent below this share. Between the two lie names and quotations.
const ABSENT: u64 = 2;

/// Fewer letters belong to no script.
const LEAST_LETTERS: u64 = 20;

impl Letters {
    /// Counts the letters of another text; a character of Chinese, Japanese or Korean counts as two.
    pub fn add(&mut self, text: &str) {
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            let at = match u32::from(c) {
                ..0x250 | 0x1e00..=0x1eff => 0,
                0x370..=0x52f => 1,
                0x590..=0x8ff => 2,
                0x3041..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9d => 3,
                0x1100..=0x11ff | 0x3131..=0x318e | 0xa960..=0xa97c | 0xac00..=0xd7fb => 4,
                _ if is_unspaced(c) => 5,
                _ => 6,
            };
            self.0[at] += 1 + u64::from(is_unspaced(c));
        }
    }

    /// Whether a text is written in another script than the session: it uses one that the session
    /// does not have, or lacks one that the session uses. Latin is never lacking: code is Latin.
    pub fn are_foreign_to(&self, session: &Self) -> bool {
        let [own, known] = [self, session].map(|letters| letters.0.iter().sum::<u64>());
        if own.min(known) < LEAST_LETTERS {
            return false;
        }
        let uses = |count: u64, all: u64| count * 100 >= USED * all;
        let lacks = |count: u64, all: u64| count * 100 < ABSENT * all;
        self.0.iter().zip(session.0).enumerate().any(|(at, (count, there))| {
            (uses(*count, own) && lacks(there, known))
                || (at > 0 && uses(there, known) && lacks(*count, own))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_into_overlapping_pairs() {
        let words = |text| pairs(text).map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(words("网关端口"), ["网关", "关端", "端口"]);
        assert_eq!(words("端"), ["端"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("サーバー"), ["サー", "ーバ", "バー"]);
        assert_eq!(pairs("서버는").map(|(at, _)| at).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn the_first_characters_are_the_first_whatever_they_are() {
        for text in ["", "plain", "né", "网关端口", "mixed 网关 text"] {
            for most in 0..20 {
                let first: String = text.chars().take(most).collect();
                assert_eq!(first_chars(text, most), first, "{text} {most}");
                let is_whole = first == text;
                assert_eq!(shortened(text, most).ends_with('…'), !is_whole, "{text}");
            }
        }
    }

    #[test]
    fn two_unspaced_characters_count_as_a_word() {
        for (text, words) in
            [("yes, commit - it", 4), ("提交。", 1), ("把端口改成 8080 吧", 4), ("", 0)]
        {
            assert_eq!(word_count(text), words, "{text}");
        }
    }

    #[test]
    fn a_text_in_another_script_than_the_session_is_told_from_one_with_names() {
        let letters = |text: &str| {
            let mut letters = Letters::default();
            letters.add(text);
            letters
        };
        let english = "We changed the port of the gateway in src/gateway.rs and ran all tests.";
        let chinese = "我们修改了网关的端口，在 src/gateway.rs 里，并且运行了所有测试。";
        let japanese =
            "ゲートウェイのポートを src/gateway.rs で変更し、すべてのテストを実行しました。";
        let korean = "게이트웨이 포트를 src/gateway.rs 에서 변경하고 모든 테스트를 실행했습니다.";
        let russian = "Мы изменили порт шлюза в src/gateway.rs и запустили все тесты.";
        let all = [english, chinese, japanese, korean, russian];
        for (at, session) in all.iter().enumerate() {
            for (other, text) in all.iter().enumerate() {
                let foreign = letters(text).are_foreign_to(&letters(session));
                assert_eq!(foreign, at != other, "{text} in {session}");
            }
        }
        let quoting = format!("{} The user said: 端口。", english.repeat(4));
        assert!(!letters(&quoting).are_foreign_to(&letters(english)));
        assert!(!letters("ok").are_foreign_to(&letters(chinese)));
    }

    #[test]
    fn a_run_ends_where_another_script_or_punctuation_begins() {
        for (text, end) in
            [("端口48213", 6), ("サーバー・x", 12), ("포트는 5", 9), ("，端", 0), ("abc", 0)]
        {
            assert_eq!(run_end(text, 0), end, "{text}");
        }
    }
}
