//! Where the recordings and published figures are that this repository does not hold.

use std::path::{Path, PathBuf};

/// The folder `name` of the shared data, or `None` (with a line that says `skipped`) where it is
/// missing. Under `PROCTOR_SHARED_REQUIRED=1` a missing folder is a failure.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    // Beside the repository, of which a crate is a folder.
    let beside = |folder: &Path| Some(folder.join("shared")).filter(|shared| shared.is_dir());
    let root = std::env::var_os("PROCTOR_SHARED")
        .map(PathBuf::from)
        .or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1).find_map(beside))
        .unwrap_or_default();
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let required = std::env::var_os("PROCTOR_SHARED_REQUIRED").is_some_and(|value| value == "1");
    assert!(!required, "shared data is required, and {} is missing", folder.display());
    println!("skipped: {} is missing", folder.display());
    None
}

/// Every file below a folder, in order of the paths.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
