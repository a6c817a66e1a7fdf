//! The duration of a call, from the tokens it reads and writes.

use crate::record::words::Latency;
use crate::settings::{Reader, SettingError};
use crate::units::Usage;

impl Latency {
    /// Reads the table of a price file.
    pub(super) fn read(mut reader: Reader<'_>) -> Result<Self, SettingError> {
        let latency = Self {
            start_ms: rate(&mut reader, "start_ms")?,
            prefill_per_second: rate(&mut reader, "prefill_per_second")?,
            cached_per_second: rate(&mut reader, "cached_per_second")?,
            decode_per_second: rate(&mut reader, "decode_per_second")?,
        };
        reader.finish()?;
        Ok(latency)
    }

    /// Milliseconds that a number of calls take one after the other, with this usage in total.
    pub fn milliseconds(&self, calls: usize, usage: &Usage) -> f64 {
        let fresh = usage.input_uncached + usage.cache_write_5m + usage.cache_write_1h;
        self.start_ms * calls as f64
            + 1_000.0
                * (fresh.0 as f64 / self.prefill_per_second
                    + usage.cache_read.0 as f64 / self.cached_per_second
                    + usage.output.0 as f64 / self.decode_per_second)
    }
}

fn rate(reader: &mut Reader<'_>, key: &str) -> Result<f64, SettingError> {
    match reader.amount(key)? {
        Some(rate) if rate > 0.0 || key == "start_ms" => Ok(rate),
        Some(_) | None => {
            let problem = format!("`{}` must be set, and above 0", reader.path_of(key));
            Err(SettingError::new(reader.place(), problem))
        }
    }
}
