//! Proctor's own session format: one JSON object per line, `*.session.jsonl`.
