//! What a reader can guess of generated sessions, and what survives in other languages; the sessions themselves are
//! tested in `proctor-synth`.

mod guesses;
mod languages;
