//! `[faults]`: what goes wrong on purpose.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Result;
use crate::model::fault::{Fault, FaultSchedule, Faults};
use crate::settings::{CheckedTable, Reader, Setting, SettingError, SettingValue};

/// Reads `[faults]`; without one nothing goes wrong.
pub(super) fn read(reader: Option<Reader<'_>>) -> Result<Faults> {
    let mut faults = Faults::default();
    let Some(mut reader) = reader else {
        return Ok(faults);
    };
    if let Some(seed) = reader.whole("seed", 0, u64::MAX)? {
        faults.seed = seed;
    }
    if let Some(retries) = reader.whole("agent_retries", 0, 100)? {
        faults.agent_retries = u32::try_from(retries).unwrap_or(u32::MAX);
    }
    for fault in Fault::ALL {
        let path = reader.path_of(fault.name());
        if let Some(setting) = reader.setting(fault.name()) {
            faults.schedules.insert(fault, strike(&path, setting)?);
        }
    }
    reader.finish()?;
    Ok(faults)
}

/// The schema of `[faults]`: each fault is struck alike.
pub(super) fn schema() -> Json {
    let mut schema = super::KEYS.object("faults");
    let mut strike = super::KEYS.object("fault")["properties"]["strike"].take();
    for fault in Fault::ALL {
        strike["description"] = json!(format!("{}: a probability, or calls", fault.doc()));
        schema["properties"][fault.name()] = strike.clone();
    }
    schema
}

/// A probability, a list of calls, or `{ calls = […], attempts = n }`.
fn strike(path: &str, setting: &Setting) -> Result<FaultSchedule> {
    let probability = match &setting.value {
        SettingValue::Table(table) => {
            let keys = CheckedTable::new(table, path, (&super::KEYS, "strike"))?;
            let Some(list) = keys.setting("calls") else {
                let problem = format!("`{path}.calls` must be set");
                return Err(SettingError::new(&setting.place, problem));
            };
            return Ok(FaultSchedule::Calls {
                calls: calls(&format!("{path}.calls"), list)?,
                attempts: keys.whole("attempts").unwrap_or(1),
            });
        }
        SettingValue::List(_) => {
            return Ok(FaultSchedule::Calls { calls: calls(path, setting)?, attempts: 1 });
        }
        SettingValue::Real(number) => *number,
        SettingValue::Integer(0) => 0.0,
        SettingValue::Integer(1) => 1.0,
        SettingValue::Integer(_) | SettingValue::Text(_) | SettingValue::Flag(_) => f64::NAN,
    };
    if (0.0..=1.0).contains(&probability) {
        return Ok(FaultSchedule::Probability(probability));
    }
    let problem = format!(
        "`{path}` must be a probability from 0 to 1 or a list of calls, not `{}`",
        setting.value
    );
    Err(SettingError::new(&setting.place, problem)
        .with_hint("as in `0.3`, `[4, 7]` or `{ calls = [4], attempts = 3 }`"))
}

fn calls(path: &str, setting: &Setting) -> Result<BTreeSet<usize>> {
    let numbers = setting.as_list().and_then(|items| {
        let calls = items.iter().map(|item| match item.value {
            SettingValue::Integer(call) => usize::try_from(call).ok(),
            _ => None,
        });
        calls.collect::<Option<BTreeSet<usize>>>()
    });
    numbers.ok_or_else(|| {
        let problem =
            format!("`{path}` must be a list of calls, counted from 0, not `{}`", setting.value);
        SettingError::new(&setting.place, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingTable;

    #[track_caller]
    fn check(text: &str, says: &str) {
        let said = SettingTable::parse("s.toml", text)
            .and_then(|table| read(Some(Reader::new(&table, "faults"))))
            .map_or_else(|error| error.to_string(), |faults| faults.to_string());
        assert!(said.contains(says), "{said}\n\ndoes not say\n\n{says}");
    }

    #[test]
    fn a_fault_is_a_probability_or_a_list_of_calls() {
        check("summary_error = 0.3", "summary_error with probability 0.3;");
        check("server_error = 1", "server_error with probability 1;");
        check("overflow_at = [9, 3]", "overflow_at at calls 3, 9;");
        check(
            "stream_cut = { calls = [2], attempts = 3 }\nagent_retries = 5\nseed = 8",
            "stream_cut at calls 2, 3 attempts each; seed 8, agent's calls sent again 5 times",
        );
        check(
            "\nsummary_error = 1.5",
            "line 2: `faults.summary_error` must be a probability from 0 to 1 or a list of calls, \
             not `1.5`",
        );
        check(
            "overflow_at = [-1]",
            "`faults.overflow_at` must be a list of calls, counted from 0, not `[-1]`",
        );
        check("stream_cut = { attempts = 3 }", "`faults.stream_cut.calls` must be set");
        check(
            "stream_cut = { calls = [1], attempts = 0 }",
            "`faults.stream_cut.attempts` must be a whole number",
        );
        check(
            "summary_eror = 0.1",
            "unknown key `faults.summary_eror`, did you mean `summary_error`?",
        );
    }
}
