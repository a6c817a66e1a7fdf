//! The `proctor` program: parses the command line, runs the command, returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    proctor::cli::main()
}
