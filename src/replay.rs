//! The agent loop without the agent: one session through one strategy.
//!
//! A recorded session fixes what the agent said and what the tools answered. Replay walks it and,
//! before each API call, lets the strategy decide what the model would have been sent. It
//! measures exactly what was sent and lost; it cannot see that an agent would have acted
//! differently.

pub mod observe;
