//! Opens files, those in other shapes too: products and people put old recordings away as `.jsonl.zst` and
//! `.jsonl.gz`, and `PowerShell`'s `>` writes UTF-16.
//!
//! The shape is known by the first bytes. What such a file says in UTF-8 is read like any file, with the same limits.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use proctor_sessions::files;
use ruzstd::decoding::errors::FrameDecoderError::ReadFrameHeaderError;
use ruzstd::decoding::errors::ReadFrameHeaderError::SkipFrame;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];
const UTF_16_LE: &[u8] = &[0xff, 0xfe];
const UTF_16_BE: &[u8] = &[0xfe, 0xff];

/// Opens a file; of a compressed one, what it unpacks to, and of one in UTF-16, its text.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::new(files::open(path)?);
    let start = file.fill_buf()?;
    Ok(if start.starts_with(ZSTD) {
        Box::new(Unpacked(Frames { file, decoder: FrameDecoder::new() }))
    } else if start.starts_with(GZIP) {
        Box::new(Unpacked(MultiGzDecoder::new(file)))
    } else if start.starts_with(UTF_16_LE) {
        Box::new(Utf16(file, u16::from_le_bytes, VecDeque::new()))
    } else if start.starts_with(UTF_16_BE) {
        Box::new(Utf16(file, u16::from_be_bytes, VecDeque::new()))
    } else {
        Box::new(file)
    })
}

/// Unpacks Zstandard.
///
/// # Errors
///
/// [`FileTooLarge`](io::ErrorKind::FileTooLarge) where the result is longer than `limit`.
#[cfg(feature = "sqlite")]
pub(super) fn unpacked(file: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let frames = Frames { file, decoder: FrameDecoder::new() };
    frames.take(limit + 1).read_to_end(&mut bytes)?;
    let fits = bytes.len() as u64 <= limit;
    fits.then_some(bytes)
        .ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "it unpacks to too much"))
}

/// Whether a file is compressed.
pub(super) fn is_compressed(path: &Path) -> bool {
    let file = files::open(path).map(BufReader::new);
    file.is_ok_and(|mut file| {
        let start = file.fill_buf().unwrap_or_default();
        start.starts_with(ZSTD) || start.starts_with(GZIP)
    })
}

/// The name of a file without its ending, and without that of the compression.
pub(super) fn stem(path: &Path) -> String {
    let ending = path.extension();
    let name = path.file_stem().unwrap_or_default();
    let name = if ending.is_some_and(|ending| ending == "zst" || ending == "gz") {
        Path::new(name).file_stem()
    } else {
        Some(name)
    };
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Says of every error that the file is compressed.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| {
            io::Error::other(format!("it is compressed, and cut or damaged: {error}"))
        })
    }
}

/// A file in UTF-16, with the order of its bytes, and the text that was decoded and not read yet.
struct Utf16<R>(R, fn([u8; 2]) -> u16, VecDeque<u8>);

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        /// So much is decoded at a time.
        const PIECE: u64 = 1 << 16;
        let Self(file, unit, decoded) = self;
        if decoded.is_empty() {
            let mut bytes = Vec::new();
            file.take(PIECE).read_to_end(&mut bytes)?;
            // The second half of a character may be in the next piece.
            if let [.., one, two] = bytes[..]
                && matches!(unit([one, two]), 0xd800..0xdc00)
            {
                file.take(2).read_to_end(&mut bytes)?;
            }
            let units: Vec<u16> = bytes.as_chunks().0.iter().copied().map(*unit).collect();
            decoded.extend(String::from_utf16_lossy(&units).bytes());
        }
        decoded.read(into)
    }
}

/// The frames of a file of Zstandard, one behind the other.
struct Frames<R> {
    file: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self { file, decoder } = self;
        loop {
            let read = decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            if !decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                decoder.decode_blocks(&mut *file, one).map_err(io::Error::other)?;
            } else if file.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                match decoder.init(&mut *file) {
                    Err(ReadFrameHeaderError(SkipFrame { length, .. })) => {
                        io::copy(&mut (&mut *file).take(length.into()), &mut io::sink())?;
                    }
                    begun => begun.map_err(io::Error::other)?,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::ImportError;
    use crate::file::SourceFile;

    const SAID: &[u8] = include_bytes!("../tests/fixtures/codex/rollout.jsonl");

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn load(path: &Path) -> Vec<Vec<u8>> {
        let sessions = crate::load(path).unwrap();
        let written = sessions.iter().map(|session| {
            let mut out = Vec::new();
            crate::native::write(session, &mut out).unwrap();
            out
        });
        written.collect()
    }

    #[test]
    fn a_file_in_utf_16_is_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            // A character of two units stands over the end of a piece, or does not.
            for begin in ["\u{feff}", "\u{feff}a"] {
                let text = begin.to_owned() + &"🌊".repeat(40_000);
                let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
                std::fs::write(&path, bytes).unwrap();
                let mut read = String::new();
                open(&path).unwrap().read_to_string(&mut read).unwrap();
                assert!(read == text, "{order:?} {begin:?}");
            }
        }
    }

    #[test]
    fn a_compressed_file_is_what_it_unpacks_to_or_is_named_as_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let plain = load(&write("a.jsonl", SAID));
        let (first, rest) = SAID.split_at(500);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(rest)].concat();
        for (pack, name) in [(zstd as fn(&[u8]) -> Vec<u8>, "a.jsonl.zst"), (gzip, "a.jsonl.gz")] {
            let packed = pack(SAID);
            assert_eq!(load(&write(name, &packed)), plain);
            let two = [pack(first), pack(rest)].concat();
            assert_eq!(load(&write(name, &two)), plain);
            for cut in [5, 20, packed.len() / 2, packed.len() - 5] {
                let error = crate::load(&write(name, &packed[..cut])).unwrap_err();
                let error = format!("{error}: {:?}", std::error::Error::source(&error));
                assert!(error.contains("it is compressed"), "{error}");
            }
            for other in [&b"notes"[..], b"{\"a\":1}", b"SQLite format 3\0 and more"] {
                let error = crate::load(&write(name, &pack(other))).unwrap_err();
                assert!(matches!(error, ImportError::Compressed(_)), "{error}");
            }
            let bomb = write(name, &pack(&b"\n".repeat(4 << 20)));
            let error = SourceFile::open(&bomb, 1 << 20).unwrap_err().to_string();
            assert!(error.contains("holds more than 1048576 bytes"), "{error}");
        }
        let native = &plain[0];
        for (pack, ending) in [(zstd as fn(&[u8]) -> Vec<u8>, "zst"), (gzip, "gz")] {
            let path = write(&format!("b.session.jsonl.{ending}"), &pack(native));
            assert_eq!(load(&path), plain);
            assert_eq!(crate::native::stem(&path).as_deref(), Some("b"));
            let id = crate::load(&path).unwrap()[0].id().to_owned();
            assert_eq!(crate::native::id_in(&path), Some(id));
            let truth = write("b.truth.json", b"{");
            assert!(crate::load_with_truth(&path, None).is_err(), "the truth beside it is read");
            std::fs::remove_file(truth).unwrap();
        }
        let two = [zstd(first), skipped].concat();
        assert_eq!(load(&write("a.jsonl.zst", &two)), plain);
    }
}
