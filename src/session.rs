//! Recorded agent sessions: the input of every experiment.
//!
//! A [`Session`] and all that describes it are the crate `proctor-sessions`; [`import`] and [`export`], which read
//! and write the files of products, are `proctor-formats`; [`synthetic`] sessions are made by `proctor-synth`.

pub use proctor_sessions::{
    CallIds, CompactedTo, ContentBlock, Details, Image, InnerRequest, JsonText, Message,
    MessageDetails, Missing, Opaque, Recorded, RecordedCompaction, ResumePoint, Role, SYNTHETIC,
    Session, SessionError, SessionParts, Source, Tag, Tags, Thinking, ToolClass, ToolResult,
    ToolSchema, ToolUse, count, ground_truth, redact, session_profile, tool_names, wire,
};

pub use proctor_formats::{self as import, export, native};
pub use proctor_synth as synthetic;
