//! A folder of logged requests: one file per call, each with its request and its response.
//!
//! LiteLLM and OpenHands write such folders. The files are put in order by their `timestamp`, or
//! else by their names, and read as one log of the API that they speak to.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use super::conversations::name;
use super::prelude::*;
use super::{HEAD, IMPORTERS};

/// Reads folders of logged requests, and single logs when asked to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLog;

/// The formats of which there are logs.
const APIS: &[&str] = &["anthropic", "openai-chat", "openai-responses"];

impl Importer for RequestLog {
    fn format(&self) -> &'static str {
        "request-log"
    }

    /// A log in one file is read by the importer of its API.
    fn detect(&self, _head: &[u8]) -> bool {
        false
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let mut head = Vec::new();
        let read = (&mut *input).take(HEAD).read_to_end(&mut head);
        read.map_err(cannot_read(path))?;
        let Some(importer) = api_of(&head) else {
            return Err(ImportError::UnknownFormat {
                path: path.to_owned(),
            });
        };
        importer.import(path, &mut head.chain(input))
    }

    fn detect_folder(&self, folder: &Folder) -> bool {
        let Some(files) = logs(folder) else {
            return false;
        };
        // The shortest log shows more than its messages.
        let size = |path: &&PathBuf| path.metadata().map_or(u64::MAX, |it| it.len());
        let Some(shortest) = files.iter().min_by_key(size) else {
            return false;
        };
        head(shortest).is_some_and(|head| api_of(&head).is_some() && is_log(&head))
    }

    /// The requests are read in their order as the lines of one log.
    fn import_folder(
        &self,
        folder: &Folder,
        files: &mut SessionFiles,
    ) -> Result<Vec<Session>, ImportError> {
        let paths = logs(folder).unwrap_or_default();
        let mut requests: Vec<(Option<f64>, String)> = Vec::new();
        for path in &paths {
            for line in files.read(path)?.values()?.0 {
                let raw: &RawValue = line.parse()?;
                let time = Object::read(raw).and_then(|mut it| it.take_as("timestamp"));
                requests.push((time, format!("{}\n", line.text)));
            }
        }
        if requests.iter().all(|(time, _)| time.is_some()) {
            requests.sort_by(|(one, _), (two, _)| {
                let is_known = one.is_some().cmp(&two.is_some());
                one.partial_cmp(two).unwrap_or(is_known)
            });
        }
        let log: String = requests.into_iter().map(|(_, text)| text).collect();
        let mut log = log.as_bytes();
        let Some(importer) = api_of(log) else {
            return Err(ImportError::Directory {
                path: folder.path().to_owned(),
            });
        };
        let mut sessions = importer.import(folder.path(), &mut log)?;
        name(&mut sessions, &files.session_id(folder));
        Ok(sessions)
    }
}

/// The files of a folder that holds nothing but JSON files, and more than one.
fn logs(folder: &Folder) -> Option<Vec<PathBuf>> {
    let names = folder.names().iter().filter(|name| !name.starts_with('.'));
    let mut paths = Vec::new();
    for name in names {
        let path = folder.child(name);
        let is_json = path.extension().is_some_and(|it| it == "json") && path.is_file();
        paths.push(is_json.then_some(path)?);
    }
    (paths.len() > 1).then_some(paths)
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

fn api_of(head: &[u8]) -> Option<&'static dyn Importer> {
    let head = &head[..head.len().min(usize::try_from(HEAD).unwrap_or(usize::MAX))];
    let mut importers = IMPORTERS.iter().copied();
    importers.find(|importer| APIS.contains(&importer.format()) && importer.detect(head))
}

/// Whether a request stands with its response.
fn is_log(head: &[u8]) -> bool {
    let values = sketch::values(head);
    let has = |key: &str| values.first().and_then(|it: &Value| it.get(key)).is_some();
    has("response") || has("request")
}
