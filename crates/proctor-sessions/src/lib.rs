#![doc = include_str!("../README.md")]

pub mod units;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod script;
pub mod tokens;
mod block;
mod compaction;
mod details;
mod embedded;
mod picture;
mod rendering;
mod session;
mod source;
mod tag;
pub mod tool_names;
pub mod ground_truth;
pub mod wire;
pub mod redact;
pub mod session_profile;

pub use block::{ContentBlock, Image, JsonText, Opaque, Thinking, ToolClass, ToolResult, ToolUse};
pub use compaction::{CompactedTo, Recorded, RecordedCompaction};
pub use details::{Details, InnerRequest, MessageDetails};
pub use session::{
    CallIds, Message, ResumePoint, Role, Session, SessionError, SessionParts, ToolSchema,
};
pub use source::{Missing, SYNTHETIC, Source, count};
pub use tag::{Tag, Tags};
