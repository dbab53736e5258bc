//! Templates before they are used: the check when one is stored, and the preview that sends nothing.

use postway_domain::{Template, TemplateName, TenantId};
use postway_mime::template::RenderedTemplate;

use super::{
    check::{content_faults, read_variables},
    door::Door,
    parse::request::VARIABLES_WEIGHT,
};
use crate::refusal::{FieldFault, Refusal, RefusalCode};

/// The template to preview.
#[derive(Clone, Debug)]
pub enum PreviewTarget {
    /// A stored template of the tenant.
    Stored {
        /// The name of the template.
        name: TemplateName,
        /// The version, or `None` for the latest.
        version: Option<i64>,
    },
    /// A template that is not stored.
    Source(Box<Template>),
}

/// A rendered template.
#[derive(Clone, Debug)]
pub struct TemplatePreview {
    /// The version, if the template is stored.
    pub version: Option<i64>,
    /// The rendered subject.
    pub subject: String,
    /// The html part.
    pub html: Option<String>,
    /// The text part, made from the html if the template has none.
    pub text: Option<String>,
    /// The faults for which such a message would be refused.
    pub warnings: Vec<FieldFault>,
}

impl Door {
    /// Checks a template before it is stored: its syntax, and that every template it refers to exists.
    pub async fn check_template(&self, template: &Template) -> Result<(), Refusal> {
        let size =
            [Some(&template.subject), template.html.as_ref(), template.text.as_ref(), template.mjml.as_ref()];
        if size.into_iter().flatten().map(String::len).sum::<usize>() > Template::BYTES_MAX {
            let message = format!("all parts together must be at most {} bytes", Template::BYTES_MAX);
            return Err(Refusal::field("template", message));
        }
        let compiled = self.lookup.templates.compile(template).await?;
        compiled.map(drop).map_err(|fault| Refusal::Invalid { details: vec![of_source(fault)] })
    }

    /// Renders a template without sending anything, with the variables of a JSON object.
    pub async fn preview(
        &self,
        tenant: &TenantId,
        what: PreviewTarget,
        variables: &str,
    ) -> Result<TemplatePreview, Refusal> {
        let (found, version) = match &what {
            PreviewTarget::Stored { name, version } => {
                let found = self.lookup.templates.find(tenant, name, *version).await?;
                let version = found.as_ref().ok().map(|compiled| compiled.version);
                (found, version)
            }
            PreviewTarget::Source(template) => (self.lookup.templates.compile(template).await?, None),
        };
        let refused = |fault: FieldFault| Refusal::Invalid { details: vec![of_source(fault)] };
        let profile = self.lookup.settings.profile(tenant).await?;
        let render = || {
            let compiled = found?;
            compiled.render(&read_variables(variables)?)
        };
        let weight = variables.len().saturating_mul(VARIABLES_WEIGHT);
        let rendered = self.heavy.run(tenant, weight, render).await?.map_err(refused)?;
        let warnings = content_faults(&rendered, &self.limits, &profile.settings.content);
        let RenderedTemplate { subject, html, text } = rendered;
        Ok(TemplatePreview { version, subject, html, text, warnings })
    }
}

/// Turns a fault of a message's template into a fault of the template itself, whose parts are its fields.
fn of_source(fault: FieldFault) -> FieldFault {
    let field = fault.field.strip_prefix("template.").unwrap_or(&fault.field).to_owned();
    FieldFault { field, ..fault }.coded(RefusalCode::InvalidTemplate)
}
