//! A key: it is sent to its provider, and goes nowhere else.

use std::fmt;
use std::sync::Arc;

/// A provider's key. It cannot be printed, compared or serialised; [`Secret::expose`] is for the
/// header that carries it and for taking it out of what a server says.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a key; blanks around it do not belong to it.
    pub fn new(key: &str) -> Self {
        Self(Arc::from(key.trim()))
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key, whole or its first or last eight characters,
    /// taken out: servers repeat parts of a key that they refuse.
    pub fn scrub(&self, text: &str) -> String {
        const SHOWN: usize = 8;
        let mut clean = text.to_owned();
        let key = self.expose();
        if key.is_empty() {
            return clean;
        }
        let characters: Vec<char> = key.chars().collect();
        let mut parts = vec![key.to_owned()];
        if characters.len() > SHOWN {
            parts.push(characters[..SHOWN].iter().collect());
            parts.push(characters[characters.len() - SHOWN..].iter().collect());
        }
        for part in parts {
            clean = clean.replace(&part, "[key]");
        }
        clean
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_no_debug_output_and_is_taken_out_of_what_servers_say() {
        let key = Secret::new(" sk-abcdefghijklmnop\n");
        assert_eq!(format!("{:?}", Some(&key)), "Some(Secret)");
        assert_eq!(key.expose(), "sk-abcdefghijklmnop");
        let said = "Incorrect key sk-abcde***ijklmnop; sk-abcdefghijklmnop";
        let clean = key.scrub(said);
        assert!(!clean.contains("abcde") && !clean.contains("ijklmnop"), "{clean}");
        assert_eq!(Secret::new("").scrub("x"), "x");
    }
}
