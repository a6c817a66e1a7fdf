//! Files that are read: no pipe, device or socket. Files that are written: whole or not at all, and never through
//! a link that somebody else put there.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;

pub mod checked;
pub mod lines;

/// Opens a file to read it. A pipe, a device or a socket is an error: to read one may never end.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened: to open a pipe waits for its writer.
    refuse_endless(&path.metadata()?)?;
    File::open(path)
}

/// Reads a file, as [`open`] opens it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text, as [`open`] opens it.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// [`NotSeekable`](io::ErrorKind::NotSeekable) for what is neither a file nor a folder.
fn refuse_endless(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() || metadata.is_dir() {
        return Ok(());
    }
    let problem = "it is a pipe or a device, and no file";
    Err(io::Error::new(io::ErrorKind::NotSeekable, problem))
}

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner: it holds text of sessions.
    Owner,
    /// Everyone, as far as the process's umask allows: reports, baselines, manual pages.
    Everyone,
}

/// How the name of a file ends that is not yet in its place. A process that was killed leaves one behind.
const UNFINISHED: &str = ".part";

/// How that name begins: it says whose it is.
fn beginning(path: &Path) -> String {
    let name: String =
        path.file_name().unwrap_or_default().to_string_lossy().chars().take(60).collect();
    format!(".{name}-")
}

/// Writes a whole file: to a new one with a name of its own in the same folder, which then takes its place. On
/// failure nothing is left of it. A link in its place is replaced, and what it leads to stays; a pipe, a device or a
/// link to one is an error.
pub fn replace(
    path: &Path,
    readers: Readers,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(unfinished(path, readers)?);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Fails where [`replace`] would fail: the folder takes no new file, or the path is a folder's.
pub fn check_replace(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    unfinished(path, Readers::Owner).map(drop)
}

/// A new file in the folder of this one. It is removed when it is dropped.
fn unfinished(path: &Path, readers: Readers) -> io::Result<tempfile::NamedTempFile> {
    if let Ok(metadata) = path.metadata() {
        refuse_endless(&metadata)?;
    }
    let prefix = beginning(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(UNFINISHED);
    #[cfg(unix)]
    if readers == Readers::Everyone {
        let usual = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        builder.permissions(usual);
    }
    #[cfg(not(unix))]
    let _ = readers;
    let folder = path.parent().unwrap_or(path);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    builder.tempfile_in(folder)
}

/// Removes what processes left of this file that were killed while they wrote it. To be called where no other writes it.
pub fn remove_unfinished(path: &Path) {
    let start = beginning(path);
    let folder = path.parent().map(Path::read_dir);
    for entry in folder.into_iter().flatten().flatten().flatten() {
        let file_name = entry.file_name();
        let name = file_name.to_string_lossy();
        if name.starts_with(&start) && name.ends_with(UNFINISHED) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// Opens a file that only its owner may read, and makes it if it is not there. A link, a pipe or a device in its
/// place is an error.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match path.symlink_metadata() {
        Ok(there) if there.is_symlink() => {
            let problem = "it is a link: name the file that it leads to, or remove it";
            return Err(io::Error::other(problem));
        }
        Ok(there) => refuse_endless(&there)?,
        Err(_) => {}
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    // Nor one that is put there now.
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options.create(true).open(path)
}

/// Whether locking failed because a file system knows no locks: Lustre and some NFS mounts say so.
pub fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let unknown = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    #[cfg(not(unix))]
    let unknown = false;
    unknown || error.kind() == io::ErrorKind::Unsupported
}

/// Whether the path still leads to this open file: it may have been removed or replaced.
#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(now) => Ok(id(now) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file that is open cannot be removed or replaced here.
#[cfg(not(unix))]
pub fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn say(words: &'static str) -> impl FnMut(&mut dyn Write) -> io::Result<()> {
        move |out| out.write_all(words.as_bytes())
    }

    #[test]
    fn what_a_link_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, report, log] = ["victim", "r.html", "lock"].map(|it| folder.path().join(it));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &report).unwrap();
        symlink(&victim, &log).unwrap();
        replace(&report, Readers::Owner, &mut say("new")).unwrap();
        assert_eq!(fs::read_to_string(&report).unwrap(), "new");
        assert!(!report.symlink_metadata().unwrap().is_symlink());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o77;
        assert_eq!(mode(&report), 0);
        replace(&report, Readers::Everyone, &mut say("newer")).unwrap();
        assert_ne!(mode(&report), 0);
        let refused = open_own(&log, OpenOptions::new().append(true)).unwrap_err();
        assert!(refused.to_string().contains("it is a link"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    }

    #[test]
    fn what_never_ends_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let device = folder.path().join("device");
        symlink("/dev/null", &device).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&pipe, &device, &socket, Path::new("/dev/zero")] {
            let tried = [
                read(path).map(drop),
                replace(path, Readers::Owner, &mut say("new")),
                check_replace(path),
            ];
            for refused in tried {
                let kind = refused.unwrap_err().kind();
                assert_eq!(kind, io::ErrorKind::NotSeekable);
            }
        }
        open_own(&pipe, OpenOptions::new().append(true)).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn half_a_file_is_none_and_nothing_is_left_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.html");
        let full = |_: &mut dyn Write| Err(io::ErrorKind::StorageFull.into());
        replace(&path, Readers::Owner, &mut { full }).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let names = [".r.html-a1.part", ".other.html-a1.part"];
        let [killed, other] = names.map(|it| folder.path().join(it));
        fs::write(&killed, "").unwrap();
        fs::write(&other, "").unwrap();
        remove_unfinished(&path);
        assert!(!killed.exists() && other.exists());
    }
}
