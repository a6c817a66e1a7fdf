//! The one integration-test binary.

mod import;
mod shared;
mod synthetic;
