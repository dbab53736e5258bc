//! `postway moving`: the move from another system to this one, rehearsed first.
//!
//! `check` reads the old system's database, tries what is there against a running server by its dry runs, and
//! lists what carries over, what does not, and what is wrong by row. It writes nothing anywhere. `import`
//! does the same and then, if nothing is wrong, makes it so through the same calls. Everything keeps the id
//! that it had, so an import that was killed is simply run again.

mod account;
mod carrier;
mod directory;
mod mail;
mod report;
mod tenant;

use std::convert::Infallible;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use futures::TryStreamExt as _;
use postway_intake::outbox::{
    OutboxError, SourceUrl,
    install::{self, InstallPlan},
};
use postway_moving::{
    CarriedKind, ImapHosts, MovingError, MovingOptions, MovingVerdict, OldDatabase, OldSystem, PayloadFolder,
    ReferenceSystem,
};

use self::carrier::{MovingClient, MovingMode};
use self::report::MovingReport;
use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::input::pair;
use crate::cli::progress::SpinnerProgress;
use crate::config::ConfigSecret;

#[derive(Debug, Subcommand)]
pub enum MovingCommand {
    /// List what would carry over from an old system, what would not, and why; write nothing
    Check(MovingSourceArgs),
    /// Check, then import what carries over; a second run imports what is missing
    Import(MovingImportArgs),
}

#[derive(Args, Debug)]
pub struct MovingSourceArgs {
    /// The old system: 000, 001, 002, 003 or 004
    #[arg(value_parser = |text: &str| text.parse::<ReferenceSystem>())]
    system: ReferenceSystem,
    /// Its database: sqlite:// and a path, postgres://… or mysql://…; it is only read
    #[arg(long, value_name = "URL", value_parser = secret)]
    database: ConfigSecret,
    /// 000: the folder that payload_file_path leads into
    #[arg(long, value_name = "FOLDER")]
    payloads: Option<PathBuf>,
    /// 000: what that folder was called where the paths were written, if it was moved
    #[arg(long, value_name = "FOLDER", requires = "payloads")]
    payloads_were: Option<PathBuf>,
    /// 001, 004: an old tenant or company and the tenant that it is here; may be repeated [default: the same
    /// id]
    #[arg(long, value_name = "OLD=TENANT")]
    tenant_of: Vec<String>,
    /// 001: suppress addresses that bounced permanently
    #[arg(long)]
    suppress_hard_bounces: bool,
    /// 002: where the mailboxes are, for all or for one domain; may be repeated
    #[arg(long, value_name = "HOST or DOMAIN=HOST")]
    imap_host: Vec<String>,
    /// 002: the port there [default: 993, or 143 where the TLS is not implicit]
    #[arg(long, value_name = "PORT")]
    imap_port: Option<u16>,
    /// 002: how connections there are protected [default: implicit]
    #[arg(long, value_parser = ["implicit", "starttls", "none"])]
    imap_tls: Option<String>,
    /// Also import mail that may have been sent already; it may arrive twice
    #[arg(long)]
    resend_doubtful: bool,
}

#[derive(Args, Debug)]
pub struct MovingImportArgs {
    #[command(flatten)]
    source: MovingSourceArgs,
    /// Skip wrong rows instead of stopping before anything is imported
    #[arg(long)]
    skip_wrong: bool,
    /// 003: leave secret and code in the rows of live tokens, for an application that looks them up [default:
    /// as it is there]
    #[arg(long)]
    keep_secrets: bool,
}

/// The URL may contain a password.
fn secret(text: &str) -> Result<ConfigSecret, Infallible> {
    Ok(ConfigSecret::new(text))
}

pub async fn run(context: &CommandContext, command: MovingCommand) -> Result<(), CommandFailure> {
    match command {
        MovingCommand::Check(args) => check(context, &args).await,
        MovingCommand::Import(args) => import(context, &args).await,
    }
}

async fn check(context: &CommandContext, args: &MovingSourceArgs) -> Result<(), CommandFailure> {
    let mut old = args.open().await?;
    let report = walk(context, args, &mut old, MovingMode::Rehearse).await?;
    report.print(context.output)?;
    match report.unsettled() {
        0 => Ok(()),
        1 => Err(anyhow::anyhow!("1 row does not carry over as it is").into()),
        rows => Err(anyhow::anyhow!("{rows} rows do not carry over as they are").into()),
    }
}

async fn import(context: &CommandContext, args: &MovingImportArgs) -> Result<(), CommandFailure> {
    let mut old = args.source.open().await?;
    let rehearsal = walk(context, &args.source, &mut old, MovingMode::Rehearse).await?;
    // Without its tables there is nothing to leave out.
    if rehearsal.wrong_rows() > 0 && (!args.skip_wrong || !old.faults().is_empty()) {
        rehearsal.print(context.output)?;
        return Err(anyhow::anyhow!(
            "nothing was imported: {} wrong; correct them there, or leave them out with --skip-wrong",
            report::rows_are(rehearsal.wrong_rows())
        )
        .into());
    }
    let imported = match args.source.system {
        ReferenceSystem::Tokens => take_over(args, rehearsal.clone()).await?,
        _ => walk(context, &args.source, &mut old, MovingMode::Import).await?,
    };
    imported.print(context.output)?;
    match imported.wrong_rows().saturating_sub(rehearsal.wrong_rows()) {
        0 => Ok(()),
        more => {
            Err(anyhow::anyhow!("{} refused that passed the check; run it again", report::rows_are(more))
                .into())
        }
    }
}

/// Reads the old system from beginning to end, and tries or makes what carries over.
async fn walk(
    context: &CommandContext,
    args: &MovingSourceArgs,
    old: &mut OldSystem,
    mode: MovingMode,
) -> Result<MovingReport, CommandFailure> {
    let mut report = MovingReport::new(args.system, mode);
    report.wrong.extend(old.faults().iter().cloned());
    report.note_unread(old.unread());
    if old.steps() == 0 {
        return Ok(report);
    }
    let client = match args.system {
        // Its tables are taken over in place, without a server.
        ReferenceSystem::Tokens => None,
        _ => Some(context.client()?),
    };
    let home = context.tenant().unwrap_or_else(|| "default".to_owned());
    let mut carrier = match client {
        Some(client) => {
            Some(MovingClient::new(client, args.system, mode, home.clone(), args.tenants()?).await?)
        }
        None => None,
    };
    let mut progress = SpinnerProgress::start();
    for step in 0..old.steps() {
        let mut verdicts = old.verdicts(step);
        while let Some(verdict) = verdicts.try_next().await.map_err(failure)? {
            match (verdict, &mut carrier) {
                (MovingVerdict::Carry(carried), Some(carrier)) => {
                    carrier.carry(*carried, &mut report).await?
                }
                (MovingVerdict::Carry(carried), None) => report.carried(carried.kind, 1),
                (MovingVerdict::Leave(left), _) => report.left.push(left),
                (MovingVerdict::Stay(stayed), _) => report.stayed(stayed),
                (MovingVerdict::Wrong(fault), _) => report.wrong.push(fault),
            }
            progress.show_progress(format!("{} rows read", report.rows_read()));
        }
        if let Some(carrier) = &mut carrier {
            carrier.end_step(&mut report).await?;
        }
    }
    if args.system == ReferenceSystem::Tokens {
        note_whether_mail_leaves(context, &home, &mut report).await;
    }
    Ok(report)
}

/// 003: nothing is imported, but its mail leaves through an account of the server; checks that it would.
async fn note_whether_mail_leaves(context: &CommandContext, home: &str, report: &mut MovingReport) {
    match default_kind(context, home).await {
        Err(why) => report.note(format!("whether its mails would leave was not asked: {why}")),
        Ok(kind) if kind == "sandbox" => report.note(format!(
            "tenant `{home}` has the sandbox as its default account, and tokens wait until it has one that sends: make it with `postway accounts create`, then `postway tenants update {home} --default-account ID`, or name it as `account` in [outbox.NAME]"
        )),
        Ok(_) => {}
    }
}

/// The kind of a tenant's default account; the sandbox of a test tenant counts like any other.
async fn default_kind(context: &CommandContext, home: &str) -> Result<String, CommandFailure> {
    let client = context.client()?;
    let tenant = client.get(&["v1", "tenants", home], &[]).await?;
    let Some(default) = tenant["default_account"].as_str() else { return Ok("sandbox".to_owned()) };
    let account = client.for_tenant(home).get(&["v1", "accounts", default], &[]).await?;
    let is_trial = tenant["test"] == true;
    Ok(account["kind"].as_str().filter(|_| !is_trial).unwrap_or_default().to_owned())
}

/// 003: its tables become ours where they are.
async fn take_over(
    args: &MovingImportArgs,
    mut report: MovingReport,
) -> Result<MovingReport, CommandFailure> {
    let url = SourceUrl::parse(args.source.database.expose())
        .map_err(|error| CommandFailure::Usage(format!("--database {error}")))?;
    let failed = |error: OutboxError| CommandFailure::Failed(error.into());
    // An application that chose this before would lose every link that it has mailed.
    let keep_secrets =
        args.keep_secrets || install::keeps_secrets(&url, ACCOUNTS_SCHEMA).await.map_err(failed)?;
    let plan = InstallPlan {
        schema: "postway".to_owned(),
        accounts_schema: Some(ACCOUNTS_SCHEMA.to_owned()),
        keep_secrets,
    };
    install::install(&url, &plan).await.map_err(failed)?;
    if keep_secrets {
        report.note("secret and code stay in the rows of live tokens".to_owned());
    }
    report.mode = MovingMode::Import;
    report.note(format!(
        "the outbox, accounts and tokens are installed in {url}; name it in postway.toml under [outbox.NAME] with kind = \"accounts\""
    ));
    Ok(report)
}

impl MovingSourceArgs {
    async fn open(&self) -> Result<OldSystem, CommandFailure> {
        let options = self.options()?;
        let database = OldDatabase::open(self.database.expose()).await.map_err(failure)?;
        OldSystem::open(database, self.system, options).await.map_err(failure)
    }

    fn options(&self) -> Result<MovingOptions, CommandFailure> {
        let payloads =
            self.payloads.as_deref().map(|root| PayloadFolder::new(root, self.payloads_were.clone()));
        let payloads =
            payloads.transpose().map_err(|error| CommandFailure::Usage(format!("--payloads: {error}")))?;
        let mut hosts =
            ImapHosts { port: self.imap_port, tls: self.imap_tls.clone(), ..ImapHosts::default() };
        for host in &self.imap_host {
            match host.split_once('=') {
                Some((domain, host)) => hosts.by_domain.push((domain.to_owned(), host.to_owned())),
                None => hosts.host = Some(host.clone()),
            }
        }
        Ok(MovingOptions {
            payloads,
            hosts,
            resend_doubtful: self.resend_doubtful,
            suppress_hard_bounces: self.suppress_hard_bounces,
        })
    }

    fn tenants(&self) -> Result<Vec<(String, String)>, CommandFailure> {
        let wrong =
            |text: &String| CommandFailure::Usage(format!("--tenant-of {text}: write it like OLD=TENANT"));
        self.tenant_of.iter().map(|text| pair(text).map_err(|_| wrong(text))).collect()
    }
}

fn failure(error: MovingError) -> CommandFailure {
    match error {
        MovingError::Address(reason) => CommandFailure::Usage(format!("--database {reason}")),
        MovingError::Option(_) => CommandFailure::Usage(error.to_string()),
        MovingError::NoFile(_) => CommandFailure::NotFound(error.to_string()),
        MovingError::Connect { .. } | MovingError::Read { .. } => CommandFailure::Failed(error.into()),
    }
}

/// 003: where its tables are.
const ACCOUNTS_SCHEMA: &str = "public";
/// The most rows that are collected for a page.
const PAGE_ROWS: usize = 500;
/// The most bytes of JSON that are collected for a page.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Whether rows of this kind are imported by a call each.
fn is_single(kind: CarriedKind) -> bool {
    !matches!(kind, CarriedKind::Message | CarriedKind::Suppression)
}
