//! How near a strategy is to the product that it is called after, and what its settings were read from. None of it is
//! behaviour: a run is the same run without it.

use super::StrategySpec;
use crate::record::words::{Fidelity, Worth};
use crate::settings::{CheckedTable, Reader, SettingError, SettingTable, SettingValue};
use crate::strategy::knob::KEYS;

/// The keys of a strategy that are read here.
pub(super) const OF_WORTH: [&str; 3] = ["fidelity", "missing", "source"];

/// The keys of a source that say where the file is: one of them is needed.
const ORIGINS: [&str; 3] = ["package", "repository", "document"];

/// How a constant of the product begins that no knob has.
const OTHER: &str = "other.";

impl StrategySpec {
    /// How near it is to its product; `None` where it does not say.
    pub(super) fn read_worth(&self) -> Result<Option<Worth>, SettingError> {
        let mut reader = Reader::new(&self.table, "");
        let missing = reader.text("missing")?.filter(|text| !text.is_empty());
        let word = reader.choice("fidelity", &Fidelity::ALL.map(Fidelity::name))?;
        let mut all = Fidelity::ALL.into_iter();
        let Some(fidelity) = all.find(|fidelity| Some(fidelity.name()) == word) else {
            return Ok(None);
        };
        if missing.is_none() && fidelity != Fidelity::Exact {
            let problem = format!("`fidelity = \"{}\"` needs `missing`", fidelity.name());
            let error = SettingError::new(self.table.place_of("fidelity"), problem);
            return Err(error.with_hint(
                "say in a sentence what of the product is not there, and what that changes",
            ));
        }
        Ok(Some(Worth {
            fidelity,
            product: self.product().to_owned(),
            missing: missing.map(str::to_owned),
        }))
    }

    /// What its settings were read from, a line each: the `[[source]]` tables, or `source = "text"`.
    pub fn sources(&self) -> Result<Vec<String>, SettingError> {
        let mut reader = Reader::new(&self.table, "");
        match self.table.get("source").map(|source| &source.value) {
            Some(SettingValue::List(_)) => {
                reader.tables("source")?.into_iter().map(|table| self.source(table)).collect()
            }
            _ => Ok(reader.text("source")?.into_iter().map(str::to_owned).collect()),
        }
    }

    /// `npm:opencode-ai 1.18.33, dist/compaction.js, read 2026-11`.
    fn source(&self, table: &SettingTable) -> Result<String, SettingError> {
        let checked = CheckedTable::new(table, "source", (&KEYS, "source"))?;
        let origins: Vec<&str> = ORIGINS.into_iter().filter_map(|key| checked.text(key)).collect();
        let [origin] = origins[..] else {
            let problem = "`source` needs one of `package`, `repository` and `document`";
            return Err(SettingError::new(table.place(), problem)
                .with_hint("a `[[source]]` table is one file that was read"));
        };
        if checked.text("package").is_some() && checked.text("version").is_none() {
            let problem = format!("`source` has no `version` of the package `{origin}`");
            return Err(SettingError::new(table.place(), problem));
        }
        let mut texts = checked.reader().table("constants")?;
        for (knob, text) in table.table("constants").map(SettingTable::entries).unwrap_or_default()
        {
            if let Some(reader) = &mut texts {
                reader.text(knob)?;
            }
            if !knob.starts_with(OTHER) && self.value_of(knob).is_none() {
                let problem =
                    format!("`source.constants` has `{knob}`, no knob of `{}`", self.name);
                return Err(SettingError::new(&text.place, problem).with_hint(
                    "in quotes: `stage.knob`, `stage.when.CONDITION`, `guards.…`, `overflow.…`, or `other.NAME` where no knob has it",
                ));
            }
        }
        let version = checked.text("version").or_else(|| checked.text("commit"));
        let versioned = [Some(origin), version].into_iter().flatten();
        let parts = [
            Some(versioned.collect::<Vec<_>>().join(" ")),
            checked.text("file").map(str::to_owned),
            checked.text("read").map(|month| format!("read {month}")),
        ];
        Ok(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::preset::PRESETS;
    use crate::strategy::trigger::Trigger;

    fn of(head: &str) -> Result<StrategySpec, SettingError> {
        let stage = "[[stage]]\nkind = 'summarize'\nname = 'all'\nmax_output_tokens = 9\n\
                     when = { any = ['manual', { tokens_over = 5 }] }\n\
                     prepare_at = { window_fraction = 0.8 }\nguards = { min_gain_tokens = 3 }\n";
        let table = SettingTable::parse("mine.toml", &format!("{head}\n{stage}"))?;
        StrategySpec::of("mine", table, &Trigger::always())
    }

    #[test]
    fn every_preset_says_what_it_is_worth_and_no_run_knows() {
        for (name, text) in PRESETS {
            let table = SettingTable::parse(name, text).unwrap();
            let spec = StrategySpec::of(name, table, &Trigger::always())
                .unwrap_or_else(|error| panic!("{error}"));
            let worth = spec.worth().unwrap_or_else(|| panic!("{name} has no fidelity"));
            let says_what = worth.missing.as_ref().is_some_and(|text| text.ends_with('.'));
            assert!(says_what || worth.fidelity == Fidelity::Exact, "{name}: {worth:?}");
            assert!(!spec.sources().unwrap().is_empty(), "{name} has no source");
            let ran = SettingTable::parse(name, &spec.to_toml()).unwrap();
            for key in OF_WORTH {
                assert_eq!(ran.get(key), None, "{name}");
            }
            // What is shown is read as what was written.
            let shown = SettingTable::parse(name, &spec.to_file()).unwrap();
            let shown = StrategySpec::of(name, shown, &Trigger::always()).unwrap();
            assert_eq!(shown.worth(), spec.worth(), "{name}");
            assert_eq!(shown.sources(), spec.sources(), "{name}");
        }
    }

    #[test]
    fn sources_are_lines_and_constants_are_those_of_knobs() {
        let read = |head: &str| of(head).and_then(|spec| spec.sources()).unwrap();
        assert_eq!(read(""), [""; 0]);
        assert_eq!(read("source = 'a book'"), ["a book"]);
        let head = "[[source]]\npackage = 'npm:a'\nversion = '1.2'\nfile = 'b*.js'\nread = '2026-11'\n\
                    constants = { 'all.when.tokens_over' = 'T=5', 'all.prepare_at.window_fraction' = '.8', \
                    'all.guards.min_gain_tokens' = '3', 'all.max_output_tokens' = 're:9+', 'other.A' = 'A=1' }\n\
                    [[source]]\nrepository = 'a/b'\ncommit = '0a1b'\n[[source]]\ndocument = 'C'\n";
        let lines = ["npm:a 1.2, b*.js, read 2026-11", "a/b 0a1b", "C"];
        assert_eq!(read(head), lines);
        // Keys with a dot are in quotes, so that the file is read again as it was.
        let file = of(head).unwrap().to_file();
        let table = SettingTable::parse("mine.toml", &file).unwrap();
        let again = StrategySpec::of("mine", table, &Trigger::always()).unwrap();
        assert_eq!(again.sources().unwrap(), lines);
    }

    #[test]
    fn mistakes_say_where_and_what() {
        for (head, says) in [
            (
                "fidelity = 'clos'",
                "1: `fidelity` must be one of `exact`, `close`, `outline`, not `\"clos\"`, did you mean `close`?",
            ),
            ("fidelity = 'close'", "1: `fidelity = \"close\"` needs `missing`"),
            ("\nfidelity = 'outline'\nmissing = ''", "2: `fidelity = \"outline\"` needs `missing`"),
            ("missing = 1", "1: `missing` must be text, not `1`"),
            ("source = 1", "1: `source` must be text, not `1`"),
            ("source = ['a']", "1: `source` must be a list of tables (`[[source]]`), not `\"a\"`"),
            (
                "[[source]]\nfile = 'a'",
                "1: `source` needs one of `package`, `repository` and `document`",
            ),
            (
                "\n[[source]]\ndocument = 'a'\nrepository = 'a/b'",
                "2: `source` needs one of `package`, `repository` and `document`",
            ),
            (
                "[[source]]\npackage = 'npm:a'",
                "1: `source` has no `version` of the package `npm:a`",
            ),
            ("[[source]]\ndocument = 'a'\npage = 'b'", "3: unknown key `source.page`"),
            (
                "[[source]]\ndocument = 'a'\nconstants = 'b'",
                "3: `source.constants` must be a table, not `\"b\"`",
            ),
            (
                "[[source]]\ndocument = 'a'\nconstants = { 'all.max_output_tokens' = 9 }",
                "3: `source.constants.all.max_output_tokens` must be text, not `9`",
            ),
            (
                "[[source]]\ndocument = 'a'\nconstants = { 'all.max_output' = '9' }",
                "3: `source.constants` has `all.max_output`, no knob of `mine`",
            ),
            (
                "[[source]]\ndocument = 'a'\nconstants = { 'some.max_output_tokens' = '9' }",
                "3: `source.constants` has `some.max_output_tokens`, no knob of `mine`",
            ),
        ] {
            let said = of(head).map_or_else(|error| error.to_string(), |_| "ok".to_owned());
            assert_eq!(said, format!("`mine.toml`: line {says}"), "{head}");
        }
    }
}
