//! The one integration-test binary.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests find the shared data through the environment and say what they skipped"
)]

mod architecture;
mod contexts;
mod import;
mod metrics;
mod probes;
mod replay;
mod shared;
mod synthetic;
mod validity;
