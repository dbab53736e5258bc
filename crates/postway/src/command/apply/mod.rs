//! `postway apply` and `postway export`: settings as files.
//!
//! A folder has one TOML file for each thing, in the words of the API: `TENANT/tenant.toml`, and
//! `TENANT/accounts/relay-1.toml` and so on for the other kinds (`kind.rs`). A field that a file has is set;
//! one that it does not have stays as it is. Secrets are references to files or variables (`reference.rs`).
//!
//! Everything goes over the HTTP API, and every change carries the version that it was planned for, so that a
//! change by somebody else in between is refused, not overwritten. All files are read and compared before the
//! first change. Applying a folder again changes nothing; one that was interrupted is simply applied again.
//!
//! Nothing is deleted that is not asked for by kind with `--delete`. Tenants are never deleted here, and neither
//! is the key that the command itself runs with.

mod apply_steps;
mod compare;
mod export_files;
mod folder;
mod kind;
mod plan;
mod reference;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use self::{
    folder::SettingsFolder,
    kind::ResourceKind,
    plan::{ApplyPlan, PlannedStep},
};
use super::CommandContext;
use crate::cli::failure::CommandFailure;

#[derive(Args, Debug)]
pub struct ApplyArgs {
    /// The folder with the settings
    folder: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Also send secrets of things that exist and are otherwise unchanged; they cannot be compared
    #[arg(long)]
    secrets: bool,
    /// Delete what the folder's tenants have of these kinds and the folder does not
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    delete: Vec<ResourceKind>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The folder to write; files of the same names are replaced
    folder: PathBuf,
}

/// Makes the server's settings those of the folder.
pub async fn apply(context: &CommandContext, args: ApplyArgs) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let folder = SettingsFolder::read(&args.folder)?;
    let plan = ApplyPlan::make(&client, &folder, &args.delete, args.secrets).await?;
    let changes: Vec<&PlannedStep> = plan.steps.iter().filter(|step| step.changes()).collect();
    let unchanged = plan.steps.len() - changes.len();
    if !output.is_json() {
        for step in &changes {
            output.text(&step.render())?;
        }
    }
    if !args.dry_run {
        apply_steps::run(&client, &plan).await?;
    }
    if output.is_json() {
        let shown: Vec<_> = changes.iter().map(|step| step.to_json()).collect();
        let answer = json!({"dry_run": args.dry_run, "changes": shown, "unchanged": unchanged});
        return output.json(&answer);
    }
    let verb = if args.dry_run { "would change" } else { "changed" };
    output.text(&format!("{verb} {}, unchanged {unchanged}", changes.len()))
}

/// Writes the server's settings to the folder.
pub async fn export(context: &CommandContext, args: ExportArgs) -> Result<(), CommandFailure> {
    let (client, output) = (context.client()?, context.output);
    let written = export_files::write(&client, &args.folder, context.tenant().as_deref()).await?;
    match output.is_json() {
        true => output.json(&json!({
            "files": written.files, "secrets": written.secrets, "left_out": written.left_out,
        })),
        false => {
            let mut text = format!("wrote {} files to {}", written.files, args.folder.display());
            if !written.secrets.is_empty() {
                text += "\nsecrets are not shown; before this is applied elsewhere, set\n  ";
                text += &written.secrets.join("\n  ");
            }
            if !written.left_out.is_empty() {
                text += "\nleft out, because a folder knows these by a name of their own\n  ";
                text += &written.left_out.join("\n  ");
            }
            output.text(&text)
        }
    }
}
