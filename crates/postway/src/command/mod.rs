//! The command line: which verbs there are, and what they share.
//!
//! One file per verb. A verb turns its arguments into a request, sends it, and prints the answer; nothing is
//! decided here that the server could decide.

mod accounts;
mod audit;
mod authorize;
mod backup;
mod batches;
mod bench;
mod cleanup;
mod completions;
mod config;
mod contacts;
mod dead_letters;
mod dkim;
mod doctor;
mod events;
mod examples;
mod inbound;
mod inspect;
mod keys;
mod mailboxes;
mod messages;
mod migrate;
mod moving;
mod nodes;
mod outbox;
mod recipients;
mod rules;
mod scoped_suppressions;
mod secrets;
mod send;
mod serve;
mod sink;
mod statistics;
mod stats;
mod streams;
mod suppressions;
mod template_files;
mod templates;
mod tenants;
mod top;
mod views;
mod webhooks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::client::{Client, Target};
use crate::cli::failure::{EXIT_CODES, Failure};
use crate::cli::output::Output;
use crate::config::{ConfigErrors, Loaded};

/// A durable email gateway: takes mail, never loses it, sends it, tells what became of it.
#[derive(Debug, Parser)]
#[command(name = "postway", version, after_help = format!("{}\n\n{EXIT_CODES}", examples::START), propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    /// Without a command: serve
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args, Debug)]
struct Global {
    /// The configuration file [default: ./postway.toml if it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    config: Option<PathBuf>,
    /// The server to speak to [default: as configured]
    #[arg(long, global = true, env = "POSTWAY_URL", help_heading = "Global options")]
    url: Option<String>,
    /// The key to speak with [default: the admin key, as configured or in the data folder]
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
enum Command {
    /// Run the server
    #[command(after_help = examples::SERVE)]
    Serve(serve::ServeArgs),
    /// Hand over one mail
    #[command(after_help = examples::SEND)]
    Send(Box<send::SendArgs>),
    /// List, show and steer messages
    #[command(subcommand, after_help = examples::MESSAGES)]
    Messages(messages::MessagesCommand),
    /// List what ran out of retries, and send it once more
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLettersCommand),
    /// List, show, push, preview and delete templates
    #[command(subcommand, after_help = examples::TEMPLATES)]
    Templates(templates::TemplatesCommand),
    /// List, add, show and delete recipients
    #[command(subcommand)]
    Recipients(recipients::RecipientsCommand),
    /// Make, list, show, suspend, activate and delete keys that sign a domain's mail
    #[command(subcommand)]
    Dkim(dkim::DkimCommand),
    /// Check everything that stands in the way of delivered mail, and say what to do
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::DoctorArgs),
    /// Create, show, change, test, suspend and delete accounts
    #[command(subcommand, after_help = examples::ACCOUNTS)]
    Accounts(Box<accounts::AccountsCommand>),
    /// Seal stored credentials anew after the secret key was changed
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// List, suspend and activate batches
    #[command(subcommand)]
    Batches(batches::BatchesCommand),
    /// List, add, show, change and remove streams, kinds of mail that readers can leave
    #[command(subcommand)]
    Streams(streams::StreamsCommand),
    /// List, add, check, import and export addresses that get no mail
    #[command(subcommand)]
    Suppressions(suppressions::SuppressionsCommand),
    /// List, add, show, change, test and remove webhooks, and see what they were told
    #[command(subcommand, after_help = examples::WEBHOOKS)]
    Webhooks(webhooks::WebhooksCommand),
    /// Watch mailboxes for bounces, receipts and mail to send on
    #[command(subcommand, after_help = examples::MAILBOXES)]
    Mailboxes(Box<mailboxes::MailboxesCommand>),
    /// Say what is done with mail that comes into a mailbox
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Keep the names and addresses that rules look up
    #[command(subcommand)]
    Contacts(contacts::ContactsCommand),
    /// Look at mail that came in, have it looked at again, or say that it is done with
    #[command(subcommand)]
    Inbound(inbound::InboundCommand),
    /// Print what happened to messages, in order
    #[command(after_help = examples::EVENTS)]
    Events(events::EventsArgs),
    /// Create, change, suspend and delete tenants, and make their keys
    #[command(subcommand, after_help = examples::TENANTS)]
    Tenants(Box<tenants::TenantsCommand>),
    /// Show who changed what
    Audit(audit::AuditArgs),
    /// Show the processes that share the database
    Nodes,
    /// Put the outbox into an application's database, and show how sources stand
    #[command(subcommand, after_help = examples::OUTBOX)]
    Outbox(outbox::OutboxCommand),
    /// Show how the mail is doing, live in the terminal
    #[command(after_help = examples::TOP)]
    Top(top::TopArgs),
    /// Show how many messages are in which state
    Stats,
    /// Show what was done, by hour or day
    Statistics(statistics::StatisticsArgs),
    /// Remove messages that ended and were reported
    Cleanup(cleanup::CleanupArgs),
    /// Forget an address
    Erase(cleanup::EraseArgs),
    /// Say what received mails are, one JSON line each: bounces, complaints, receipts, automatic replies
    #[command(after_help = examples::INSPECT)]
    Inspect(inspect::InspectArgs),
    /// Take every mail by SMTP and pass none on: a relay for whoever has none yet
    #[command(after_help = examples::SINK)]
    Sink(sink::SinkArgs),
    /// Measure the real path, HTTP in and SMTP out, and print rates, latency and loss
    #[command(after_help = examples::BENCH)]
    Bench(Box<bench::BenchArgs>),
    /// Copy everything that a gateway on SQLite keeps, while it runs
    #[command(after_help = examples::BACKUP)]
    Backup(backup::BackupArgs),
    /// Show or apply the database's migrations, or copy everything to another database
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    /// Rehearse the move from another system, and bring its tenants, accounts, mailboxes and waiting mail here
    #[command(subcommand, after_help = examples::MOVING)]
    Moving(Box<moving::MovingCommand>),
    /// Show the tables of the systems you come from, as views in the database
    #[command(subcommand)]
    Views(views::ViewsCommand),
    /// Check or print the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print a completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions(completions::CompletionsArgs),
}

/// What every command gets: whom to speak to, and how to print.
#[derive(Debug)]
pub struct Session {
    target: Target,
    config_file: Option<PathBuf>,
    /// How to print.
    pub output: Output,
}

impl Session {
    /// A client for the server that the flags or the configuration name.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::prepare(&self.target, self.config_file.as_deref())
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
    pub fn load(&self) -> Result<Loaded, Failure> {
        Ok(self.load_or_errors()?)
    }

    /// The same, with every error by itself.
    pub fn load_or_errors(&self) -> Result<Loaded, ConfigErrors> {
        crate::config::load(self.config_file.as_deref())
    }
}

impl Cli {
    /// Whether this runs the server, which wants all cores.
    pub fn is_server(&self) -> bool {
        matches!(self.command, None | Some(Command::Serve(_)))
    }

    /// Runs the command.
    pub async fn run(self) -> Result<(), Failure> {
        let Global { config: config_file, url, key, tenant, json } = self.global;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let target = Target { url: given(url), key: given(key), tenant: given(tenant) };
        let session = Session { target, config_file, output: Output::new(json) };
        match self.command.unwrap_or(Command::Serve(serve::ServeArgs::default())) {
            Command::Serve(args) => Ok(Box::pin(serve::run(session.load()?, args)).await?),
            Command::Send(args) => send::run(&session, *args).await,
            Command::Messages(command) => messages::run(&session, command).await,
            Command::DeadLetters(command) => dead_letters::run(&session, command).await,
            Command::Templates(command) => templates::run(&session, command).await,
            Command::Recipients(command) => recipients::run(&session, command).await,
            Command::Dkim(command) => dkim::run(&session, command).await,
            Command::Doctor(args) => Box::pin(doctor::run(&session, args)).await,
            Command::Accounts(command) => accounts::run(&session, *command).await,
            Command::Secrets(command) => secrets::run(&session, command).await,
            Command::Batches(command) => batches::run(&session, command).await,
            Command::Streams(command) => streams::run(&session, command).await,
            Command::Suppressions(command) => suppressions::run(&session, command).await,
            Command::Webhooks(command) => webhooks::run(&session, command).await,
            Command::Mailboxes(command) => mailboxes::run(&session, *command).await,
            Command::Rules(command) => rules::run(&session, command).await,
            Command::Contacts(command) => contacts::run(&session, command).await,
            Command::Inbound(command) => inbound::run(&session, command).await,
            Command::Events(args) => events::run(&session, args).await,
            Command::Tenants(command) => tenants::run(&session, *command).await,
            Command::Audit(args) => audit::run(&session, args).await,
            Command::Nodes => nodes::run(&session).await,
            Command::Outbox(command) => outbox::run(&session, command).await,
            Command::Top(args) => top::run(&session, args).await,
            Command::Stats => stats::run(&session).await,
            Command::Statistics(args) => statistics::run(&session, args).await,
            Command::Cleanup(args) => cleanup::cleanup(&session, args).await,
            Command::Erase(args) => cleanup::erase(&session, args).await,
            Command::Inspect(args) => inspect::run(&args),
            Command::Sink(args) => sink::run(&session, args).await,
            Command::Bench(args) => Box::pin(bench::run(&session, *args)).await,
            Command::Backup(args) => Box::pin(backup::run(&session, args)).await,
            Command::Migrate(command) => migrate::run(&session, command).await,
            Command::Moving(command) => Box::pin(moving::run(&session, *command)).await,
            Command::Views(command) => views::run(&session, command).await,
            Command::Config(command) => config::run(&session, command),
            Command::Completions(args) => completions::run(&session, &args),
        }
    }
}

#[cfg(test)]
mod tests;
