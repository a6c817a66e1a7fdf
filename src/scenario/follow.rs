//! Strategies that follow another one: finds it, and checks that it follows none itself.

use super::Result;
use crate::settings::{Place, SettingError, with_suggestion};
use crate::strategy::StrategySpec;

/// A strategy needs the one that it follows in the same scenario; that one must not follow another.
///
/// If no strategy has exactly this name, the first that has it without overrides is meant, so that
/// an override on the command line changes both.
pub(super) fn find_followed(
    mut strategies: Vec<StrategySpec>,
    place: &Place,
) -> Result<Vec<StrategySpec>> {
    let (followers, leaders): (Vec<StrategySpec>, Vec<StrategySpec>) =
        strategies.iter().cloned().partition(|spec| spec.follows().is_some());
    for at in 0..strategies.len() {
        let spec = &strategies[at];
        let Some(follows) = spec.follows() else {
            continue;
        };
        if leaders.iter().any(|leader| leader.name() == follows) {
            continue;
        }
        let place = spec.table().get("follows").map_or(place, |setting| &setting.place);
        if followers.iter().any(|follower| follower.name() == follows) {
            let problem = format!(
                "`{}` follows `{follows}`, which itself follows another strategy",
                spec.name()
            );
            return Err(SettingError::new(place, problem));
        }
        let mut alike = strategies
            .iter()
            .filter(|other| other.follows().is_none() && other.base_name() == follows);
        let Some(meant) = alike.next().map(StrategySpec::name) else {
            let problem =
                format!("`{}` follows `{follows}`, which the scenario does not run", spec.name());
            let error = SettingError::new(place, problem).with_hint(format!(
                "add `{follows}` to the strategies, or write a number of tokens, as in `tail@20000`"
            ));
            let known = leaders.iter().map(StrategySpec::name);
            return Err(with_suggestion(error, follows, known));
        };
        let meant = spec.clone().following(meant);
        if strategies.iter().any(|other| other.name() == meant.name()) {
            let problem = format!("strategy `{}` is named twice", meant.name());
            return Err(SettingError::new(place, problem));
        }
        strategies[at] = meant;
    }
    Ok(strategies)
}
