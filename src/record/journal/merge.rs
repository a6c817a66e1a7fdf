//! The parts of a run joined to one run.
//!
//! Merging is a union of cells: in any order, in steps or twice, the same parts make the same bytes. Lines are
//! copied as they are, session by session, so that memory holds an index of the cells, one session of lines, and the
//! recorded answers, if there are any.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    CALIBRATIONS, CALL_TIMES, CELLS, Journal, JournalError, LOCK, MANIFEST, TIMINGS, VERDICTS,
    lease, lines, no_json, read_manifest, read_shard, unreadable, unwritable, write_private,
};
use crate::files::{self, lines::CheckedLines};
use crate::model::cassette::{self, CassetteEntry, CassetteError};
use crate::record::shard::{Partition, Shard};
use crate::record::{CellKey, Manifest, StrategyEntry};
use crate::units::ContentHash;

/// Name of the file of recorded answers in a run folder.
pub(super) const CASSETTE: &str = "cassette.jsonl";

/// Name of the file of those answers that are not the run's, of parts that are not known any more.
const OTHERS_MERGED: &str = "cassette-merged.jsonl";

/// The result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// Cells that the run has now.
    pub cells: usize,
    /// Cells of the whole run.
    pub planned: usize,
    /// The parts whose cells are missing, with the number of these; without a number where it is not known
    /// which part they belong to.
    pub missing: Vec<(Option<MissingPart>, usize)>,
    /// Recorded answers that differ from an earlier part's answer to the same request.
    pub other_answers: usize,
}

/// A part that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// Which one.
    pub part: Partition,
    /// Its folder, where it was named.
    pub folder: Option<PathBuf>,
    /// The limit that stopped it, in words.
    pub stopped: Option<String>,
    /// The words of the command that makes it.
    pub command: Vec<String>,
}

/// Why folders cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A folder cannot be read, or the run not written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Recorded answers cannot be read or written.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// The run would be written into one of its parts.
    #[error("`{}` is both a part and the folder to write to", .0.display())]
    OntoItself(PathBuf),
    /// The run would be written into a part that is not among those that are joined.
    #[error("`{}` is part {} of a run, and the whole run would be written there", .0.display(), .1)]
    OntoPart(PathBuf, Partition),
    /// Two folders are of two runs.
    #[error("`{}` is part of run {}, and `{}` of run {}", one.0.display(), one.1, other.0.display(), other.1)]
    TwoRuns {
        /// A folder, and the fingerprint of its run.
        one: (PathBuf, String),
        /// Another folder with another one.
        other: (PathBuf, String),
    },
    /// The program of a strategy is not the same in two folders.
    #[error("the program of `{strategy}` is another one in `{}` than in `{}`: {difference}", folders[1].display(), folders[0].display())]
    TwoPrograms {
        /// The strategy.
        strategy: String,
        /// The difference in words.
        difference: String,
        /// The folders.
        folders: [PathBuf; 2],
    },
    /// Two folders are parts of two divisions.
    #[error("`{}` is part {}, and `{}` is part {}: they do not make one whole", one.0.display(), one.1, other.0.display(), other.1)]
    TwoDivisions {
        /// A folder, and its part.
        one: (PathBuf, Partition),
        /// A folder with a part of another division.
        other: (PathBuf, Partition),
    },
    /// A process is running in a part.
    #[error("another process is running in `{}`", .0.display())]
    Running(PathBuf),
    /// A part ends in half a line.
    #[error("`{}` ends in half a line: the process that wrote it was killed", .0.display())]
    Torn(PathBuf, Option<Shard>),
    /// A cell is in two parts and differs.
    #[error("{cell} is in `{}` and in `{}`, and they differ", folders[0].display(), folders[1].display())]
    TwoCells {
        /// The cell.
        cell: CellKey,
        /// The folders.
        folders: [PathBuf; 2],
    },
    /// A part holds a cell that its run does not have.
    #[error("`{}` holds {cell}, which the run does not have", folder.display())]
    StrayCell {
        /// The cell.
        cell: CellKey,
        /// The folder.
        folder: PathBuf,
    },
}

/// A folder that is joined.
struct RunFolder {
    folder: PathBuf,
    /// Of its run.
    fingerprint: String,
    /// The strategies of its manifest; the manifest itself is read once for all folders.
    strategies: Vec<StrategyEntry>,
    shard: Option<Shard>,
    /// Held until all is written.
    _lock: Option<File>,
}

/// The place of a line of `cells.jsonl`.
#[derive(Debug, Clone, Copy)]
struct CellSpan {
    session: u32,
    input: u32,
    begin: u64,
    length: u64,
}

impl RunFolder {
    fn open(folder: &Path) -> Result<Self, MergeError> {
        let manifest = read_manifest(folder)?;
        // A copy may have no lock, or be one that cannot be locked.
        let lock = files::open(&folder.join(LOCK)).ok();
        if let Some(lock) = &lock
            && matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
        {
            return Err(MergeError::Running(folder.to_owned()));
        }
        Self::locked(folder, &manifest, lock)
    }

    fn locked(folder: &Path, manifest: &Manifest, lock: Option<File>) -> Result<Self, MergeError> {
        Ok(Self {
            fingerprint: manifest.fingerprint.clone(),
            strategies: manifest.strategies.clone(),
            shard: read_shard(folder)?,
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    fn part(&self) -> Option<(PathBuf, Partition)> {
        Some((self.folder.clone(), self.shard.as_ref()?.part))
    }
}

/// Joins run folders and parts of runs to a run in `out`. What `out` holds of the same run already is joined too.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<Merged, MergeError> {
    let mut seen = BTreeSet::from([true_path(out)]);
    let mut inputs = Vec::new();
    for folder in folders {
        if true_path(folder) == true_path(out) {
            return Err(MergeError::OntoItself(out.to_owned()));
        }
        if seen.insert(true_path(folder)) {
            inputs.push(RunFolder::open(folder)?);
        }
    }
    let named: Vec<&Path> = inputs.iter().map(|input| &*input.folder).chain([out]).collect();
    if let Some(folder) = lease::held(&named).first() {
        return Err(MergeError::Running((*folder).to_owned()));
    }
    if let Some(shard) = read_shard(out)?.filter(|shard| !shard.is_merged) {
        return Err(MergeError::OntoPart(out.to_owned(), shard.part));
    }
    // The union does not depend on the order in which the parts are named.
    inputs.sort_by_key(|input| input.part().map(|(_, part)| part.shard));
    // What the folder of the run holds already is joined too.
    if let (Some(first), true) = (inputs.first(), out.join(MANIFEST).exists()) {
        let held = read_manifest(out)?;
        if held.fingerprint == first.fingerprint {
            inputs.push(RunFolder::locked(out, &held, None)?);
        }
    }
    let Some(manifest) = one_run(&inputs)? else {
        return Ok(Merged::default());
    };
    inputs.retain(|input| input.folder != out);
    one_division(&inputs)?;
    // All cells are read before anything is written.
    let mut lines = index(&inputs, 0, &manifest)?;
    let journal = Journal::open(out, &manifest)?;
    inputs.push(RunFolder::locked(out, &manifest, None)?);
    let division = one_division(&inputs)?;
    lines.extend(index(&inputs, inputs.len() - 1, &manifest)?);
    lines.sort_by_key(|line| line.session);
    let mut joining =
        Joining { present: vec![0; manifest.sessions.len()], manifest: &manifest, inputs: &inputs };
    // The cells come last: what is beside them belongs to them.
    join_lines(&inputs, out)?;
    let parts = inputs.iter().map(|one| (&*one.folder, one.shard.as_ref()));
    let folders: Vec<(&Path, Option<&Shard>)> = parts.collect();
    let other_answers = join_answers(&folders, out)?;
    joining.write_cells(&lines, &out.join(CELLS))?;
    let present = joining.present;
    let planned: Vec<usize> = (0..present.len()).map(|at| manifest.cells_of(at)).collect();
    let missing = (0..present.len()).map(|at| (at, planned[at].saturating_sub(present[at])));
    let missing: Vec<(usize, usize)> = missing.filter(|(_, cells)| *cells > 0).collect();
    let merged = Merged {
        cells: present.iter().sum(),
        planned: planned.iter().sum(),
        missing: parts_of(&missing, division, &manifest, &inputs),
        other_answers,
    };
    match division {
        // So that a later merge knows where the rest comes from.
        Some(part) if !merged.missing.is_empty() => {
            journal.keep_shard(&Shard { is_merged: true, ..Shard::new(part, command(&inputs)) })?;
        }
        _ => journal.forget_shard()?,
    }
    Ok(merged)
}

fn true_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The manifest that all have; none without any. A program that answered differently in one of them is random in all;
/// one that is not the same in all of them makes two runs.
fn one_run(inputs: &[RunFolder]) -> Result<Option<Manifest>, MergeError> {
    let Some(first) = inputs.first() else {
        return Ok(None);
    };
    if let Some(other) = inputs.iter().find(|input| input.fingerprint != first.fingerprint) {
        let [one, other] =
            [first, other].map(|input| (input.folder.clone(), input.fingerprint.clone()));
        return Err(MergeError::TwoRuns { one, other });
    }
    let mut manifest = read_manifest(&first.folder)?;
    for input in inputs {
        for (own, other) in manifest.strategies.iter_mut().zip(&input.strategies) {
            let (Some(program), Some(another)) = (&mut own.program, &other.program) else {
                continue;
            };
            if let Some(difference) = program.difference(another) {
                return Err(MergeError::TwoPrograms {
                    strategy: own.name.clone(),
                    difference,
                    folders: [first.folder.clone(), input.folder.clone()],
                });
            }
            own.is_random |= other.is_random;
            let asked = !own.is_random && another.answers.is_some();
            program.answers = program.answers.take().filter(|_| asked);
        }
    }
    Ok(Some(manifest))
}

/// A part of the division that all parts are of, if there are any.
fn one_division(inputs: &[RunFolder]) -> Result<Option<Partition>, MergeError> {
    let mut parts = inputs.iter().filter_map(RunFolder::part);
    let Some(one) = parts.next() else {
        return Ok(None);
    };
    match parts.find(|(_, part)| !part.divides_like(one.1)) {
        Some(other) => Err(MergeError::TwoDivisions { one, other }),
        None => Ok(Some(one.1)),
    }
}

/// The command that makes one of the parts, if there are any.
fn command(inputs: &[RunFolder]) -> Vec<String> {
    let shard = inputs.iter().find_map(|input| input.shard.as_ref());
    shard.map(|shard| shard.command.clone()).unwrap_or_default()
}

/// The parts that sessions without all their cells belong to.
fn parts_of(
    missing: &[(usize, usize)],
    division: Option<Partition>,
    manifest: &Manifest,
    inputs: &[RunFolder],
) -> Vec<(Option<MissingPart>, usize)> {
    let Some(any) = division else {
        let cells = missing.iter().map(|(_, cells)| cells).sum();
        return Vec::from_iter((cells > 0).then_some((None, cells)));
    };
    let shards = any.by.shards(any.of, manifest);
    let mut of_shards: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, cells) in missing {
        *of_shards.entry(shards[*at]).or_default() += cells;
    }
    let parts = of_shards.into_iter().map(|(shard, cells)| {
        let part = Partition { shard, ..any };
        let named = inputs.iter().find(|input| {
            input.shard.as_ref().is_some_and(|own| own.part == part && !own.is_merged)
        });
        let own = named.and_then(|input| input.shard.as_ref());
        let missing = MissingPart {
            part,
            folder: named.map(|input| input.folder.clone()),
            stopped: own.and_then(|shard| shard.stopped.clone()),
            command: own.map_or_else(|| command(inputs), |own| own.command.clone()),
        };
        (Some(missing), cells)
    });
    parts.collect()
}

/// Checks all lines of the parts from this one on, and finds out where the cells of each session are.
fn index(inputs: &[RunFolder], from: usize, run: &Manifest) -> Result<Vec<CellSpan>, MergeError> {
    let ids = run.sessions.iter().zip(0..);
    let places: BTreeMap<&str, u32> = ids.map(|(session, at)| (&*session.id, at)).collect();
    let repeats = 0..run.repeats;
    let strategies = run.strategies.iter().map(|entry| &*entry.name);
    let arms = strategies.flat_map(|name| repeats.clone().map(move |repeat| (name, repeat)));
    let arms: BTreeSet<(&str, u32)> = arms.chain([("full", 0), ("empty", 0)]).collect();
    let mut found = Vec::new();
    for (input, number) in inputs.iter().zip(0..).skip(from) {
        let path = input.folder.join(CELLS);
        let Some(mut lines) = CheckedLines::open(&path).map_err(unreadable(&path))? else {
            continue;
        };
        let mut begin = 0;
        while let Some(key) = lines.read::<CellKey>().map_err(lines::refused(&path))? {
            let known = places.get(&*key.session);
            let arm = (key.strategy.as_str(), key.repeat);
            let Some(session) = known.filter(|_| arms.contains(&arm)) else {
                return Err(MergeError::StrayCell { cell: key, folder: input.folder.clone() });
            };
            let length = lines.length();
            found.push(CellSpan { session: *session, input: number, begin, length });
            begin += length;
        }
        if !lines.bytes().is_empty() {
            let (folder, shard) = (input.folder.clone(), input.shard.clone());
            return Err(MergeError::Torn(folder, shard));
        }
    }
    Ok(found)
}

struct Joining<'a> {
    manifest: &'a Manifest,
    inputs: &'a [RunFolder],
    /// How many cells of each session are there.
    present: Vec<usize>,
}

impl Joining<'_> {
    /// Writes the cells of all sessions, each cell once.
    fn write_cells(&mut self, lines: &[CellSpan], out: &Path) -> Result<(), MergeError> {
        copied(out, &mut |write| {
            for own in lines.chunk_by(|one, next| one.session == next.session) {
                for line in self.session(own)? {
                    write(&line)?;
                }
            }
            Ok(())
        })
    }

    /// The lines of one session in the order of the run, each cell once.
    fn session(&mut self, lines: &[CellSpan]) -> Result<Vec<Vec<u8>>, MergeError> {
        let session = lines[0].session as usize;
        let mut cells: BTreeMap<(String, u32), (usize, Vec<u8>)> = BTreeMap::new();
        for own in lines.chunk_by(|one, next| one.input == next.input) {
            let input = own[0].input as usize;
            let folder = &self.inputs[input].folder;
            let path = folder.join(CELLS);
            let mut file = files::open(&path).map_err(unreadable(&path))?;
            for line in own {
                let mut bytes = vec![0; usize::try_from(line.length).unwrap_or_default()];
                let read = { file.seek(SeekFrom::Start(line.begin)) }
                    .and_then(|_| file.read_exact(&mut bytes));
                read.map_err(unreadable(&path))?;
                let key: CellKey = serde_json::from_slice(&bytes)
                    .map_err(|error| JournalError::Damaged(path.clone(), error.into()))?;
                let name = (key.strategy.clone(), key.repeat);
                match cells.get(&name) {
                    Some((other, known)) if *known != bytes => {
                        return Err(MergeError::TwoCells {
                            cell: key,
                            folders: [self.inputs[*other].folder.clone(), folder.clone()],
                        });
                    }
                    Some(_) => {}
                    None => _ = cells.insert(name, (input, bytes)),
                }
            }
        }
        self.present[session] = cells.len();
        let order = self.manifest.arms(session).into_iter();
        let names = order.map(|arm| (self.manifest.name_of(arm).to_owned(), arm.repeat));
        let in_order = names.filter_map(|name| cells.remove(&name));
        Ok(in_order.map(|(_, bytes)| bytes).collect())
    }
}

/// Joins the files of lines beside the cells, in the order of the parts.
fn join_lines(inputs: &[RunFolder], out: &Path) -> Result<(), MergeError> {
    for name in [TIMINGS, CALL_TIMES, VERDICTS, CALIBRATIONS] {
        let paths = inputs.iter().map(|input| input.folder.join(name));
        let paths: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
        if paths.is_empty() {
            continue;
        }
        // A folder may say the same more than once and mean it: each line is there as often as in the folder that has
        // it most often.
        let mut written: BTreeMap<ContentHash, usize> = BTreeMap::new();
        copied(&out.join(name), &mut |write| {
            for path in &paths {
                let mut own: BTreeMap<ContentHash, usize> = BTreeMap::new();
                let Some(mut lines) = CheckedLines::open(path).map_err(unreadable(path))? else {
                    continue;
                };
                while let Some(line) = lines.read::<Value>().map_err(lines::refused(path))? {
                    let line = lines::of(&[line], name)?;
                    let hash = ContentHash::of(&line);
                    let times = own.entry(hash).or_default();
                    *times += 1;
                    let all = written.entry(hash).or_default();
                    if *times > *all {
                        *all += 1;
                        write(&line)?;
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes a file out of pieces of others. Where one of these cannot be read nothing is written.
fn copied(path: &Path, pieces: &mut PieceWriter<'_>) -> Result<(), MergeError> {
    let mut failure = None;
    let written = write_private(path, &mut |out| {
        let joined = pieces(&mut |piece: &[u8]| -> Result<(), MergeError> {
            Ok(out.write_all(piece).map_err(unwritable(path))?)
        });
        joined.map_err(|error| {
            failure = Some(error);
            io::Error::other("a part cannot be read")
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(written?),
    }
}

/// Hands pieces of bytes to the writer that it is given.
type PieceWriter<'a> =
    dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<(), MergeError>) -> Result<(), MergeError> + 'a;

/// Joins the recorded answers. Of several to one request the first in the order of their text is the run's; the
/// other ones are kept beside it, in a file that is named after the part whose cells they are of. Returns how many
/// these are.
pub fn join_answers(folders: &[(&Path, Option<&Shard>)], out: &Path) -> Result<usize, MergeError> {
    let mut all: BTreeMap<String, BTreeMap<String, (CassetteEntry, String)>> = BTreeMap::new();
    for (folder, shard) in folders {
        for path in cassettes(folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = match shard {
                Some(shard) if !shard.is_merged => other_answers(shard.part),
                _ if name == CASSETTE => OTHERS_MERGED.to_owned(),
                _ => name.into_owned(),
            };
            for entry in cassette::read(&path)?.entries {
                let text = serde_json::to_string(&entry).map_err(no_json(CASSETTE))?;
                let own = all.entry(entry.key.clone()).or_default();
                own.entry(text).or_insert((entry, name.clone()));
            }
        }
    }
    let mut first = Vec::new();
    let mut others: BTreeMap<&str, Vec<&CassetteEntry>> = BTreeMap::new();
    for own in all.values() {
        let mut answers = own.values();
        first.extend(answers.next().map(|(entry, _)| entry));
        for (entry, name) in answers {
            others.entry(name).or_default().push(entry);
        }
    }
    if !first.is_empty() {
        cassette::write_sorted(&out.join(CASSETTE), first)?;
    }
    let count = others.values().map(Vec::len).sum();
    for (name, entries) in others {
        cassette::write_sorted(&out.join(name), entries)?;
    }
    Ok(count)
}

/// The file of those answers of a part that are not the run's.
fn other_answers(part: Partition) -> String {
    format!("cassette-{}-of-{}.jsonl", part.shard, part.of)
}

/// The cassettes of a run folder.
fn cassettes(folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == CASSETTE || (name.starts_with("cassette-") && name.ends_with(".jsonl")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
