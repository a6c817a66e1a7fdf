//! Reads a log of requests that is one long list, request by request.
//!
//! Joined to sessions they are the same as if each stood on a line of its own, and so they are given
//! to the importer. A first pass finds where each stands, and that nothing else is in the list.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;

use serde_json::value::RawValue;

use super::conversations::{NO_CONVERSATION, Object, name};
use super::documents::mended;
use super::lines::{MAX_NESTING, nesting, session_id};
use super::rows::{Scan, read_into};
use super::{ImportError, Importer, Recording};

/// The formats of which there are logs.
const FORMATS: &[&str] = &["anthropic", "openai-chat", "openai-responses"];

/// The sessions of a file that is a list of requests; none if it is anything else.
pub fn listed(
    path: &Path,
    importer: Option<&dyn Importer>,
) -> Result<Option<Vec<Recording>>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        return Ok(None);
    }
    let (head, _) = super::open(path)?;
    let told = || super::claimant(&head).map(|it| it as &dyn Importer);
    let importer = importer.or_else(told);
    let Some(importer) = importer.filter(|it| FORMATS.contains(&it.format())) else {
        return Ok(None);
    };
    let mut file = File::open(path).map_err(io)?;
    let mut input = File::open(path).map_err(io)?;
    let found = Scan::new(None).read(&mut input, &mut |place, is_listed| {
        let mut bytes = Vec::new();
        read_into(&mut bytes, &mut file, place)?;
        Ok(is_listed && is_request(bytes))
    });
    let Some(found) = found.map_err(io)? else {
        return Ok(None);
    };
    let id = session_id(path, found.hasher);
    let mut lines = Lines {
        file,
        places: found.places.into_iter(),
        line: Vec::new(),
        at: 0,
    };
    // What is wrong is told where all is read at once.
    let Ok(mut sessions) = importer.import(path, &mut lines) else {
        return Ok(None);
    };
    let unknown = sessions.iter().map(|it| &it.parts.source.unknown);
    if unknown
        .into_iter()
        .any(|it| it.contains_key(NO_CONVERSATION))
    {
        return Ok(None);
    }
    name(&mut sessions, &id);
    Ok(Some(sessions.into_iter().map(Recording::from).collect()))
}

/// Whether this is valid JSON, and a request that was logged.
fn is_request(bytes: Vec<u8>) -> bool {
    let text = mended(bytes, &mut |_| {});
    let raw: Option<&RawValue> = serde_json::from_str(&text).ok();
    let object = raw.and_then(Object::read);
    object.is_some_and(|it| {
        let sent = ["request", "request_body", "messages", "input"];
        let is_sent = sent.iter().any(|key| it.has(key));
        // The list around it is a level more.
        is_sent && !it.has("role") && nesting(text.as_bytes()) < MAX_NESTING
    })
}

/// The values of a list, each as a line or some.
struct Lines {
    file: File,
    places: std::vec::IntoIter<Range<u64>>,
    line: Vec<u8>,
    at: usize,
}

impl Read for Lines {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Lines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.line.len()
            && let Some(place) = self.places.next()
        {
            self.line.clear();
            self.at = 0;
            read_into(&mut self.line, &mut self.file, place)?;
            self.line.push(b'\n');
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}
