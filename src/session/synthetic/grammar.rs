//! The small grammars that synthetic content is made of, each with its own words.

pub(crate) mod names;
pub(crate) mod output;
pub(crate) mod prose;
pub(crate) mod source;

/// Replaces each `{slot}` of a template by its value.
pub(crate) fn fill(template: &str, slots: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, tail) = after.split_once('}').unwrap_or((after, ""));
        let value = slots.iter().find(|(slot, _)| *slot == name);
        text.push_str(value.map_or(name, |(_, value)| value));
        rest = tail;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn slots_are_filled_and_their_values_are_not_read_again() {
        let filled = super::fill("a {x} c {y}", &[("x", "{y}"), ("y", "d")]);
        assert_eq!(filled, "a {y} c d");
    }
}
