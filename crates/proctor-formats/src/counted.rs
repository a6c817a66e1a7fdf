//! Values of a record that are read with what cannot be read of them counted.

use super::prelude::*;

/// Takes out of an [`Object`] what the conversation counts where it cannot be read.
pub(super) trait Counted {
    /// Takes a content out, and reads it.
    fn take_blocks(&mut self, key: &str, speaker: Speaker, assembler: &mut Assembler) -> Blocks;

    /// Takes the counters of a call out.
    fn take_usage(&mut self, key: &str, cached: CachedTokens, to: &mut Assembler) -> Option<Usage>;

    /// Takes a time out; a value that is none is counted.
    fn take_time(&mut self, key: &str, assembler: &mut Assembler) -> When;

    /// Puts the model, its window and the tools in the session's header.
    fn header(&mut self, assembler: &mut Assembler);

    /// Counts the keys that were not taken as not belonging to the conversation.
    fn count_left(self, what: &str, assembler: &mut Assembler);
}

impl Counted for Object<'_> {
    fn take_blocks(&mut self, key: &str, speaker: Speaker, assembler: &mut Assembler) -> Blocks {
        content::blocks(self.take(key), speaker, &mut assembler.source)
    }

    fn take_usage(&mut self, key: &str, cached: CachedTokens, to: &mut Assembler) -> Option<Usage> {
        to.usage(self.take(key), cached)
    }

    fn take_time(&mut self, key: &str, assembler: &mut Assembler) -> When {
        time_or_warn(time(self.take(key)?), &mut assembler.source)
    }

    fn header(&mut self, assembler: &mut Assembler) {
        let header = &mut assembler.header;
        header.model = self.take_text("model").or(header.model.take());
        let window = self.take_as("context_window").map(Tokens);
        header.context_window = window.or(header.context_window);
        for definition in self.items("tools") {
            assembler.define_tool(definition);
        }
    }

    fn count_left(self, what: &str, assembler: &mut Assembler) {
        for (key, raw) in self.into_entries() {
            if raw.get() != "null" {
                assembler.skip(&format!("{what} `{key}`"));
            }
        }
    }
}

/// A time that was read; one that cannot be read is counted.
pub(super) fn time_or_warn<T>(read: Option<T>, source: &mut Source) -> Option<T> {
    if read.is_none() {
        source.warn("a timestamp cannot be read");
    }
    read
}

/// A time as a text, or seconds or milliseconds since 1970.
pub(super) fn time(raw: &RawValue) -> When {
    // Seconds reach this in the year 5138, milliseconds did in 1973.
    const SECONDS_BELOW: f64 = 1e11;
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => Some(time_or_local(&text)?.0),
        Value::Number(number) => {
            let elapsed = number.as_f64()?;
            let scale = if elapsed.abs() < SECONDS_BELOW { 1e3 } else { 1.0 };
            let milliseconds = (elapsed * scale).round();
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (milliseconds.abs() < 1e18).then_some(Timestamp(milliseconds as i64))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
