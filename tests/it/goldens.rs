//! Files that the code makes and that are committed, and how much of everything is tried.

/// Holds a committed file equal to what the code makes; `PROCTOR_BLESS=1` writes it.
#[track_caller]
pub(crate) fn golden(path: &str, made: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("PROCTOR_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let path = path.display();
    assert!(committed == made, "{path} is not what the code makes: PROCTOR_BLESS=1 writes it");
}

/// All of these where `PROCTOR_SCAN` is `all`, as `.ci/run all` sets it; otherwise every third, the first among them.
#[expect(clippy::disallowed_methods, reason = "asks whether to try everything")]
pub(crate) fn sampled<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let is_whole = std::env::var_os("PROCTOR_SCAN").is_some_and(|value| value == "all");
    all.into_iter().step_by(if is_whole { 1 } else { 3 })
}
