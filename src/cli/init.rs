//! `proctor init`: a scenario to start from, or a compaction of one's own with its tests.

use std::path::{Path, PathBuf};

use super::{Exit, Result, listed, make_folder, print, refuse_existing, write_new};

/// Arguments of `proctor init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File to write; with `--python` or `--typescript` the folder for the files, by default this one
    path: Option<PathBuf>,
    /// Write a compaction in Python: the function, its client, its tests for pytest, a scenario and a workflow
    #[arg(long, conflicts_with = "typescript")]
    python: bool,
    /// Write a compaction in JavaScript or TypeScript: the function, its client, its tests for vitest, a scenario and
    /// a workflow
    #[arg(long)]
    typescript: bool,
    /// Overwrite existing files
    #[arg(short, long)]
    force: bool,
}

const STARTER: &str = include_str!("../../scenarios/starter.toml");
const SUITE: &str = include_str!("../../examples/ci/suite.toml");

/// Where files go, with their texts.
type StarterFiles = [(&'static str, &'static str)];

/// A file of a folder of this repository, which keeps its name or goes to another place.
macro_rules! copy {
    ($folder:literal, $name:literal) => {
        copy!($folder, $name, $name)
    };
    ($folder:literal, $name:literal, $to:literal) => {
        ($to, include_str!(concat!("../../", $folder, "/", $name)))
    };
}

const PYTHON: &StarterFiles = &[
    copy!("examples/python", "compaction.py"),
    copy!("examples/python", "test_compaction.py"),
    copy!("clients/python", "proctor_strategy.py"),
    ("suite.toml", SUITE),
    copy!("examples/python", "workflow.yml", ".github/workflows/compaction.yml"),
];

const TYPESCRIPT: &StarterFiles = &[
    copy!("examples/typescript", "compaction.js"),
    copy!("examples/typescript", "compaction.test.js"),
    copy!("examples/typescript", "package.json"),
    copy!("clients/typescript", "proctor_strategy.js"),
    copy!("clients/typescript", "proctor_strategy.d.ts"),
    ("suite.toml", SUITE),
    copy!("examples/typescript", "workflow.yml", ".github/workflows/compaction.yml"),
];

pub(super) fn run(args: &Args) -> Result<Exit> {
    if args.python {
        let tests = "pytest      # needs `pip install pytest` and Proctor's wheel, which `pip install` of its clone makes";
        return write_all(args, PYTHON, "python3 compaction.py", tests);
    }
    if args.typescript {
        let tests = "npm test    # after `npm install`, with Proctor's npm package";
        return write_all(args, TYPESCRIPT, "node compaction.js", tests);
    }
    let path = args.path.as_deref().unwrap_or(Path::new("proctor.toml"));
    write_new(path, STARTER.as_bytes(), args.force)?;
    let shown = path.display();
    print(&format!("wrote `{shown}`; run it with `proctor run {shown}`\n"))
}

/// Writes all of the files, or none where one of them is there already; says what to do with them.
fn write_all(args: &Args, files: &StarterFiles, program: &str, tests: &str) -> Result<Exit> {
    let folder = args.path.as_deref().unwrap_or(Path::new("."));
    for (name, _) in files {
        refuse_existing(&folder.join(name), args.force)?;
    }
    for (name, text) in files {
        let path = folder.join(name);
        make_folder(path.parent().unwrap_or(folder))?;
        // The packages bring the client; a copy beside the program needs none.
        let standalone = text.replace("from \"proctor-bench\"", "from \"./proctor_strategy.js\"");
        write_new(&path, standalone.as_bytes(), args.force)?;
    }
    let names = listed(files.iter().map(|(name, _)| name));
    let change = match args.path {
        Some(_) => format!("  cd {}\n", folder.display()),
        None => String::new(),
    };
    print(&format!(
        "wrote {names}\n{change}  proctor check -- {program}\n  \
         proctor run suite.toml --strategy none --strategy-cmd '{program}'\n  {tests}\n"
    ))
}
