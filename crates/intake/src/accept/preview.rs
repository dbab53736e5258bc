//! Templates before they are used: the check when one is stored, and the preview that sends nothing.

use postway_domain::{MailLocale, Template, TemplateName, TenantId};
use postway_mime::{html, template::RenderedTemplate};

use super::{
    check::{content_faults, read_variables},
    door::Door,
    parse::request::VARIABLES_WEIGHT,
};
use crate::budget::HEAVY_BYTES;
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
        /// The language; the tenant's if `None`.
        locale: Option<MailLocale>,
    },
    /// A template that is not stored.
    Source(Box<Template>),
}

/// A rendered template.
#[derive(Clone, Debug)]
pub struct TemplatePreview {
    /// The name and version, if the template is stored. The name ends with its language, if it has one.
    pub stored: Option<(String, i64)>,
    /// The language that was chosen, if any.
    pub locale: Option<MailLocale>,
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
        let profile = self.lookup.settings.profile(&template.tenant).await?;
        let locales = MailLocale::chain(template.locale().as_ref(), profile.settings.locale.as_ref());
        let compiled = self.lookup.templates.compile(template, &locales).await?;
        compiled.map(drop).map_err(|fault| Refusal::Invalid { details: vec![of_source(fault)] })
    }

    /// Renders a template without sending anything, with the variables of a JSON object.
    pub async fn preview(
        &self,
        tenant: &TenantId,
        what: PreviewTarget,
        variables: &str,
    ) -> Result<TemplatePreview, Refusal> {
        let profile = self.lookup.settings.profile(tenant).await?;
        let default = profile.settings.locale.as_ref();
        let templates = &self.lookup.templates;
        let (found, is_stored) = match &what {
            PreviewTarget::Stored { name, version, locale } => {
                let locales = MailLocale::chain(locale.as_ref(), default);
                (templates.find(tenant, name, *version, &locales).await?, true)
            }
            PreviewTarget::Source(template) => {
                let locales = MailLocale::chain(template.locale().as_ref(), default);
                (templates.compile(template, &locales).await?, false)
            }
        };
        let compiled = found.as_ref().ok();
        let stored = compiled.filter(|_| is_stored).map(|compiled| (compiled.name.clone(), compiled.version));
        let locale = compiled.and_then(|compiled| compiled.locale.clone());
        let inlines = compiled.is_some_and(|compiled| compiled.inline_css);
        let refused = |fault: FieldFault| Refusal::Invalid { details: vec![of_source(fault)] };
        let render = || {
            let compiled = found?;
            let mut rendered = compiled.render(&read_variables(variables)?)?;
            let styled = rendered.html.as_deref().filter(|_| compiled.inline_css).map(html::inline_css);
            let unstyled = match styled {
                Some(Ok(inlined)) => {
                    let inlined = inlined.into_owned();
                    rendered.html = Some(inlined);
                    None
                }
                Some(Err(error)) => Some(FieldFault::new("html", error.to_string())),
                None => None,
            };
            Ok((rendered, unstyled))
        };
        let weight = variables.len().saturating_mul(VARIABLES_WEIGHT);
        let weight = weight.max(if inlines { HEAVY_BYTES + 1 } else { 0 });
        let (rendered, unstyled) = self.heavy.run(tenant, weight, render).await?.map_err(refused)?;
        let mut warnings = content_faults(&rendered, &self.limits, &profile.settings.content);
        warnings.extend(unstyled);
        let RenderedTemplate { subject, html, text } = rendered;
        Ok(TemplatePreview { stored, locale, subject, html, text, warnings })
    }
}

/// Turns a fault of a message's template into a fault of the template itself, whose parts are its fields.
fn of_source(fault: FieldFault) -> FieldFault {
    let field = fault.field.strip_prefix("template.").unwrap_or(&fault.field).to_owned();
    FieldFault { field, ..fault }.coded(RefusalCode::InvalidTemplate)
}
