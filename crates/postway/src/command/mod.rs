//! The command line: one file for each command.
//!
//! A command turns its arguments into a request, sends it, and prints the answer; nothing is decided here
//! that the server could decide. Every noun has the verbs `create` and `delete`; verbs of earlier versions
//! are hidden aliases.

mod accounts;
mod apply;
mod archive;
mod audit;
mod audit_chain;
mod authorize;
mod backup;
mod batches;
mod bench;
mod bulk;
mod cleanup;
mod completions;
mod config;
mod contacts;
mod dead_letters;
mod dev;
mod dkim;
mod doctor;
mod domains;
mod events;
mod examples;
mod history;
mod hooks;
mod inbound;
mod inspect;
mod keys;
mod mailboxes;
mod message_filter;
mod messages;
mod migrate;
mod moving;
mod nodes;
mod outbox;
mod recipients;
mod restore;
mod routes;
mod rules;
mod scoped_suppressions;
mod secrets;
mod send;
mod serve;
mod sink;
mod stats;
mod streams;
mod suppressions;
mod template_files;
mod templates;
mod tenants;
mod top;
mod users;
mod views;
mod webhooks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::client::{ApiClient, ServerTarget};
use crate::cli::failure::{CommandFailure, EXIT_CODES};
use crate::cli::output::CommandOutput;
use crate::config::{ConfigErrors, LoadedConfig};

/// A durable email gateway: it accepts mail, never loses it, sends it, and reports every outcome.
#[derive(Debug, Parser)]
#[command(name = "postway", version, after_help = format!("{}\n\n{EXIT_CODES}", examples::START), propagate_version = true)]
pub struct CommandLine {
    #[command(flatten)]
    global: GlobalArgs,
    /// Without a command: serve
    #[command(subcommand)]
    command: Option<PostwayCommand>,
}

#[derive(Args, Debug)]
struct GlobalArgs {
    /// The configuration file [default: ./postway.toml if it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    config: Option<PathBuf>,
    /// The server to call [default: as configured]
    #[arg(long, global = true, env = "POSTWAY_URL", help_heading = "Global options")]
    url: Option<String>,
    /// The API key [default: the admin key, as configured or in the data folder]
    #[arg(
        long,
        global = true,
        env = "POSTWAY_API_KEY",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    key: Option<String>,
    /// The tenant that an admin key works for [default: default]
    #[arg(long, global = true, env = "POSTWAY_TENANT", help_heading = "Global options")]
    tenant: Option<String>,
    /// Print the server's JSON instead of tables
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PostwayCommand {
    /// Run the server
    #[command(after_help = examples::SERVE)]
    Serve(serve::ServeArgs),
    /// Run a server for development: SMTP and HTTP on this machine without keys, all mail captured
    #[command(after_help = examples::DEV)]
    Dev(dev::DevArgs),
    /// Hand over one mail
    #[command(after_help = examples::SEND)]
    Send(Box<send::SendArgs>),
    /// List and show messages, retry, cancel and resolve them
    #[command(subcommand, after_help = examples::MESSAGES)]
    Messages(messages::MessagesCommand),
    /// Cancel, retry, reschedule, resolve or suppress all messages of a filter
    #[command(subcommand, after_help = examples::BULK)]
    Bulk(Box<bulk::BulkCommand>),
    /// List messages whose retries ran out, and replay them
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLettersCommand),
    /// List, show, create, preview and delete templates
    #[command(subcommand, after_help = examples::TEMPLATES)]
    Templates(templates::TemplatesCommand),
    /// List, create, show and delete recipients
    #[command(subcommand)]
    Recipients(recipients::RecipientsCommand),
    /// Create, list, show, suspend, activate and delete keys that sign the mail of a domain
    #[command(subcommand)]
    Dkim(dkim::DkimCommand),
    /// List and check domains, and see who sends in their names: DMARC and TLS reports
    #[command(subcommand, after_help = examples::DOMAINS)]
    Domains(domains::DomainsCommand),
    /// Check everything that delivery depends on, and say what to do
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::DoctorArgs),
    /// Create, show, change, test, suspend and delete accounts
    #[command(subcommand, after_help = examples::ACCOUNTS)]
    Accounts(Box<accounts::AccountsCommand>),
    /// Encrypt stored credentials again after the secret key was changed
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// List, create, show, change, order, try and delete routes, which choose the account of mail that names
    /// none
    #[command(subcommand, after_help = examples::ROUTES)]
    Routes(routes::RoutesCommand),
    /// List, suspend and activate batches
    #[command(subcommand)]
    Batches(batches::BatchesCommand),
    /// Show, create, change and delete hooks: where providers report what happened to mail
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    /// List, create, show, change and delete streams: kinds of mail that readers can unsubscribe from
    #[command(subcommand)]
    Streams(streams::StreamsCommand),
    /// List, create, delete, check, import and export suppressions of addresses
    #[command(subcommand)]
    Suppressions(suppressions::SuppressionsCommand),
    /// List, create, show, change, test and delete webhooks, and see their notifications
    #[command(subcommand, after_help = examples::WEBHOOKS)]
    Webhooks(webhooks::WebhooksCommand),
    /// Create, list, test, change and delete mailboxes that are watched for bounces, receipts and mail to
    /// forward
    #[command(subcommand, after_help = examples::MAILBOXES)]
    Mailboxes(Box<mailboxes::MailboxesCommand>),
    /// Create, list, try, change and delete rules for the mail of a mailbox
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Create, list, change and delete contacts: names and addresses that rules look up
    #[command(subcommand)]
    Contacts(contacts::ContactsCommand),
    /// List and show inbound mail, process it again, or mark it as done
    #[command(subcommand)]
    Inbound(inbound::InboundCommand),
    /// List, show and delete stored copies of what was sent, and open encrypted ones
    #[command(subcommand, after_help = examples::ARCHIVE)]
    Archive(archive::ArchiveCommand),
    /// Print the events of messages, in order
    #[command(after_help = examples::EVENTS)]
    Events(events::EventsArgs),
    /// Create, change, suspend and delete tenants and their keys
    #[command(subcommand, after_help = examples::TENANTS)]
    Tenants(Box<tenants::TenantsCommand>),
    /// Create, invite, change and delete users: the people who operate the gateway
    #[command(subcommand, after_help = examples::USERS)]
    Users(users::UsersCommand),
    /// Show who changed what, follow it, and check that nothing of it was removed
    Audit(audit::AuditArgs),
    /// Show the processes that share the database
    Nodes,
    /// Install the outbox into the database of an application, and show the status of sources
    #[command(subcommand, after_help = examples::OUTBOX)]
    Outbox(outbox::OutboxCommand),
    /// Show queue, rates and problems, live in the terminal
    #[command(after_help = examples::TOP)]
    Top(top::TopArgs),
    /// Show the queue now: how many messages are in each state, and the oldest that is due
    Stats,
    /// Show past work: how many messages were accepted, sent and bounced in each hour or day
    #[command(alias = "statistics")]
    History(history::HistoryArgs),
    /// Remove messages that ended and whose subscribers were notified
    Cleanup(cleanup::CleanupArgs),
    /// Remove everything that is stored about an address
    Erase(cleanup::EraseArgs),
    /// Classify received mails as bounces, complaints, receipts or automatic replies, one JSON line each
    #[command(after_help = examples::INSPECT)]
    Inspect(inspect::InspectArgs),
    /// Accept every mail over SMTP and pass none on: a relay for trying things out
    #[command(after_help = examples::SINK)]
    Sink(sink::SinkArgs),
    /// Measure the real path, HTTP in and SMTP out, and print rates, latency and loss
    #[command(after_help = examples::BENCH)]
    Bench(Box<bench::BenchArgs>),
    /// Copy everything that a gateway on SQLite stores, while it runs
    #[command(after_help = examples::BACKUP)]
    Backup(backup::BackupArgs),
    /// Make a data folder from a backup, for a gateway on SQLite
    #[command(after_help = examples::RESTORE)]
    Restore(restore::RestoreArgs),
    /// Show or apply the database's migrations, or copy everything to another database
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    /// Rehearse the move from another system, and import its tenants, accounts, mailboxes and waiting mail
    #[command(subcommand, after_help = examples::MOVING)]
    Moving(Box<moving::MovingCommand>),
    /// Install views into the database that show the tables of the systems you come from
    #[command(subcommand)]
    Views(views::ViewsCommand),
    /// Make tenants, accounts, templates and the like as a folder of files says, and show the difference
    #[command(after_help = examples::APPLY)]
    Apply(apply::ApplyArgs),
    /// Write tenants, accounts, templates and the like to a folder of files
    #[command(after_help = examples::EXPORT)]
    Export(apply::ExportArgs),
    /// Check or print the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print a completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions(completions::CompletionsArgs),
}

/// What every command gets: the server to call, and how to print.
#[derive(Debug)]
pub struct CommandContext {
    target: ServerTarget,
    config_file: Option<PathBuf>,
    /// How to print.
    pub output: CommandOutput,
}

impl CommandContext {
    /// A client of the server that the flags or the configuration name.
    pub fn client(&self) -> Result<ApiClient, CommandFailure> {
        ApiClient::prepare(&self.target, self.config_file.as_deref())
    }

    /// The file that the configuration is read from, if there is one.
    pub fn config_file(&self) -> Option<PathBuf> {
        let default = PathBuf::from(crate::config::DEFAULT_FILE);
        self.config_file.clone().or_else(|| default.exists().then_some(default))
    }

    /// Whether the command line or the environment names a server.
    pub fn names_a_server(&self) -> bool {
        self.target.url.is_some()
    }

    /// The tenant that the command line or the environment names.
    pub fn tenant(&self) -> Option<String> {
        self.target.tenant.clone()
    }

    /// The configuration that a server started here would have.
    pub fn load(&self) -> Result<LoadedConfig, CommandFailure> {
        Ok(self.load_or_errors()?)
    }

    /// The configuration that a server started here would have, or every error in it.
    pub fn load_or_errors(&self) -> Result<LoadedConfig, ConfigErrors> {
        crate::config::load(self.config_file.as_deref())
    }
}

impl CommandLine {
    /// Whether this runs the server, which uses all cores.
    pub fn is_server(&self) -> bool {
        matches!(self.command, None | Some(PostwayCommand::Serve(_) | PostwayCommand::Dev(_)))
    }

    /// Runs the command.
    pub async fn run(self) -> Result<(), CommandFailure> {
        let GlobalArgs { config: config_file, url, key, tenant, json } = self.global;
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        let target = ServerTarget { url: non_empty(url), key: non_empty(key), tenant: non_empty(tenant) };
        let context = CommandContext { target, config_file, output: CommandOutput::new(json) };
        match self.command.unwrap_or(PostwayCommand::Serve(serve::ServeArgs::default())) {
            PostwayCommand::Serve(args) => Ok(Box::pin(serve::run(context.load()?, args)).await?),
            PostwayCommand::Dev(args) => Box::pin(dev::run(args)).await,
            PostwayCommand::Send(args) => send::run(&context, *args).await,
            PostwayCommand::Messages(command) => messages::run(&context, command).await,
            PostwayCommand::Bulk(command) => bulk::run(&context, *command).await,
            PostwayCommand::DeadLetters(command) => dead_letters::run(&context, command).await,
            PostwayCommand::Templates(command) => templates::run(&context, command).await,
            PostwayCommand::Recipients(command) => recipients::run(&context, command).await,
            PostwayCommand::Dkim(command) => dkim::run(&context, command).await,
            PostwayCommand::Domains(command) => domains::run(&context, command).await,
            PostwayCommand::Doctor(args) => Box::pin(doctor::run(&context, args)).await,
            PostwayCommand::Accounts(command) => accounts::run(&context, *command).await,
            PostwayCommand::Secrets(command) => secrets::run(&context, command).await,
            PostwayCommand::Batches(command) => batches::run(&context, command).await,
            PostwayCommand::Hooks(command) => hooks::run(&context, command).await,
            PostwayCommand::Streams(command) => streams::run(&context, command).await,
            PostwayCommand::Suppressions(command) => suppressions::run(&context, command).await,
            PostwayCommand::Webhooks(command) => webhooks::run(&context, command).await,
            PostwayCommand::Mailboxes(command) => mailboxes::run(&context, *command).await,
            PostwayCommand::Routes(command) => routes::run(&context, command).await,
            PostwayCommand::Rules(command) => rules::run(&context, command).await,
            PostwayCommand::Contacts(command) => contacts::run(&context, command).await,
            PostwayCommand::Inbound(command) => inbound::run(&context, command).await,
            PostwayCommand::Archive(command) => archive::run(&context, command).await,
            PostwayCommand::Events(args) => events::run(&context, args).await,
            PostwayCommand::Tenants(command) => tenants::run(&context, *command).await,
            PostwayCommand::Users(command) => users::run(&context, command).await,
            PostwayCommand::Audit(args) => audit::run(&context, args).await,
            PostwayCommand::Nodes => nodes::run(&context).await,
            PostwayCommand::Outbox(command) => outbox::run(&context, command).await,
            PostwayCommand::Top(args) => top::run(&context, args).await,
            PostwayCommand::Stats => stats::run(&context).await,
            PostwayCommand::History(args) => history::run(&context, args).await,
            PostwayCommand::Cleanup(args) => cleanup::cleanup(&context, args).await,
            PostwayCommand::Erase(args) => cleanup::erase(&context, args).await,
            PostwayCommand::Inspect(args) => inspect::run(&args),
            PostwayCommand::Sink(args) => sink::run(&context, args).await,
            PostwayCommand::Bench(args) => Box::pin(bench::run(&context, *args)).await,
            PostwayCommand::Backup(args) => Box::pin(backup::run(&context, args)).await,
            PostwayCommand::Restore(args) => Box::pin(restore::run(&context, args)).await,
            PostwayCommand::Migrate(command) => migrate::run(&context, command).await,
            PostwayCommand::Moving(command) => Box::pin(moving::run(&context, *command)).await,
            PostwayCommand::Views(command) => views::run(&context, command).await,
            PostwayCommand::Apply(args) => apply::apply(&context, args).await,
            PostwayCommand::Export(args) => apply::export(&context, args).await,
            PostwayCommand::Config(command) => config::run(&context, command),
            PostwayCommand::Completions(args) => completions::run(&context, &args),
        }
    }
}

#[cfg(test)]
mod tests;
