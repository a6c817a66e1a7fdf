//! `proctor view`: serves the report of a run folder on this machine, while the run goes on.

use std::path::PathBuf;

/// Arguments of `proctor view`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The page is made again from the folder each time it is loaded, so it may be opened \
                  while the run goes on. Only this machine can reach it. Ctrl-C ends it."
)]
pub(super) struct Args {
    /// Folder of the run
    run: PathBuf,
    /// Port to listen at; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// This build has no HTTP.
#[cfg(not(feature = "http"))]
pub(super) fn run(args: &Args) -> anyhow::Result<super::Exit> {
    let hint = format!(
        "`proctor report {} -o report.html` writes the page to a file",
        args.run.display()
    );
    super::stop_with(
        super::Exit::Usage,
        "this build of proctor speaks no HTTP",
        hint,
    )
}

#[cfg(feature = "http")]
pub(super) fn run(args: &Args) -> anyhow::Result<super::Exit> {
    use std::sync::Arc;

    use super::interrupt::stop_on_interrupt;
    use super::{CliError, Exit, chain, print, read_run, report, say};
    use crate::proxy::page::PageServer;

    report::check_folder(&args.run)?;
    read_run(&args.run)?;
    let server = PageServer::bind(args.port)
        .map_err(|error| CliError::new(Exit::Usage, chain(&error.into())))?;
    let stop = stop_on_interrupt("ending");
    print(&format!("http://{}/\n", server.address()))?;
    say("each load shows the run as it is then; Ctrl-C ends");
    let folder = args.run.clone();
    let render = move |session: Option<&str>| {
        page(&folder, session).map_err(|error| format!("{}\n", chain(&error)))
    };
    server.serve(Arc::new(render), &stop)?;
    Ok(Exit::Done)
}

/// The report of the folder as it is now.
#[cfg(feature = "http")]
fn page(folder: &std::path::Path, session: Option<&str>) -> anyhow::Result<String> {
    let run = super::read_run(folder)?;
    let mut report = crate::report::Report::of(&run.manifest, &run.cells);
    if let Some(id) = session {
        let is_known = run.manifest.sessions.iter().any(|it| it.id == id);
        anyhow::ensure!(is_known, "the run has no session `{id}`");
        report.first_session = Some(id.to_owned());
    }
    let name = std::path::Path::new("report.html");
    let format = super::report::format_of(crate::report::Kind::Run, name)?;
    let artifacts = format.render(&report)?;
    let bytes = artifacts.into_iter().map(|it| it.bytes).next();
    Ok(String::from_utf8(bytes.unwrap_or_default())?)
}
