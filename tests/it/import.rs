//! Importers against files of our own and against real recordings.
