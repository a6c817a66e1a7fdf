//! A folder of logged requests: one file per call, each with its request and its response.
//!
//! LiteLLM and OpenHands write such folders. The files are put in order by their `timestamp`, or
//! else by their names, and read as one log of the API that they speak to.

use super::IMPORTERS;
use super::prelude::*;

/// The formats of which there are logs.
const APIS: &[&str] = &["anthropic", "openai-chat", "openai-responses", "gemini"];

/// A log in one file is read by the importer of its API.
pub(super) const IMPORTER: Importer =
    Importer::of_file("request-log", Detect::By(|_| false), import)
        .in_folders(is_log_folder, import_folder);

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    let head = Head::of(&file.bytes);
    match api_of(&head) {
        Some(importer) => importer.import_with_truth(&file.path, &mut &file.bytes[..]),
        None => Err(ImportError::UnknownFormat(file.path, head.in_words())),
    }
}

fn is_log_folder(folder: &Folder) -> bool {
    // The shortest log shows more than its messages.
    let files = logs(folder).into_iter().flatten();
    let shortest = files.min_by_key(|path| path.metadata().map_or(u64::MAX, |data| data.len()));
    shortest.and_then(|path| super::open(&path).ok()).is_some_and(|(head, _)| {
        let head = Head::of(&head);
        api_of(&head).is_some() && head.is("request | response")
    })
}

/// Reads the requests in their order as the lines of one log.
fn import_folder(folder: &Folder, files: &mut SessionFiles, source: &mut Source) -> Imported {
    let mut requests: Vec<(Option<f64>, String)> = Vec::new();
    for path in &logs(folder).unwrap_or_default() {
        for line in files.read(path)?.values(source)? {
            let time =
                Object::read(line.parse()?).and_then(|mut object| object.take_as("timestamp"));
            requests.push((time, format!("{}\n", line.text)));
        }
    }
    if requests.iter().all(|(time, _)| time.is_some()) {
        requests.sort_by(|(one, _), (two, _)| {
            one.partial_cmp(two).unwrap_or(one.is_some().cmp(&two.is_some()))
        });
    }
    let log: String = requests.into_iter().map(|(_, text)| text).collect();
    let Some(importer) = api_of(&Head::of(log.as_bytes())) else {
        return Err(ImportError::Directory(folder.path().to_owned()));
    };
    let mut sessions = importer.import(folder.path(), &mut log.as_bytes())?;
    name(&mut sessions, &files.session_id(folder));
    Ok(sessions)
}

/// The files of a folder that holds nothing but JSON files, and more than one.
fn logs(folder: &Folder) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for name in folder.names().iter().filter(|name| !name.starts_with('.')) {
        let path = folder.child(name);
        let json = path.extension().is_some_and(|value| value == "json") && path.is_file();
        paths.push(json.then_some(path)?);
    }
    (paths.len() > 1).then_some(paths)
}

fn api_of(head: &Head) -> Option<&'static Importer> {
    let mut importers = IMPORTERS.iter();
    importers.find(|importer| APIS.contains(&importer.format) && importer.detect.matches(head))
}
