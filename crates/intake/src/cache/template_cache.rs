//! Cached templates, compiled with everything that they extend and include.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use postway_domain::{MailLocale, Template, TemplateName, TenantId};
use postway_mime::template::{RenderedTemplate, TemplateError, TemplateSet, TemplateSource};
use postway_store::{Store, StoreError};
use serde_json::{Map, Value};

use crate::{cache::ttl_cache::TtlCache, refusal::FieldFault};

/// The most templates that one template may refer to, directly or indirectly, itself included.
const CLOSURE_MAX: usize = 32;
/// The most bytes of source that they may have together.
const CLOSURE_BYTES_MAX: usize = 4 * Template::BYTES_MAX;
/// The most compiled templates in the cache, and the memory they may occupy together.
const CACHED_MAX: usize = 500;
const CACHED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A compiled template occupies roughly this many times the memory of its source.
const COMPILED_WEIGHT: usize = 8;

/// A compiled template.
pub(crate) struct CompiledTemplate {
    pub name: String,
    pub version: i64,
    /// Its language, if it was chosen by one.
    pub locale: Option<MailLocale>,
    /// Whether the style sheet of its html is inlined.
    pub inline_css: bool,
    set: TemplateSet,
    /// Bytes of source, including the templates it refers to.
    source_bytes: usize,
}

impl CompiledTemplate {
    /// Renders subject and texts with these variables.
    pub(crate) fn render(&self, variables: &Map<String, Value>) -> Result<RenderedTemplate, FieldFault> {
        self.set.render(&self.name, variables).map_err(|error| fault(&error))
    }
}

/// A template, or the fault in the given name.
pub(crate) type TemplateLookup = Result<Arc<CompiledTemplate>, FieldFault>;

/// What a template was looked up by.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TemplateKey {
    tenant: TenantId,
    name: TemplateName,
    version: Option<i64>,
    /// The languages to try, for the template unless it `is_exact`, and for those that it refers to.
    locales: Vec<MailLocale>,
    is_exact: bool,
}

/// The cache of all tenants' templates.
pub(crate) struct TemplateCache {
    store: Arc<dyn Store>,
    known: TtlCache<TemplateKey, Arc<CompiledTemplate>>,
}

impl TemplateCache {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: TtlCache::with_byte_limit(CACHED_MAX, CACHED_BYTES_MAX) }
    }

    /// Finds a template in the first of these languages that it has, else the one without a language; in this
    /// version, or its latest.
    pub(crate) async fn find(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
        locales: &[MailLocale],
    ) -> Result<TemplateLookup, StoreError> {
        let (tenant, name, locales) = (tenant.clone(), name.clone(), locales.to_vec());
        self.look_up(TemplateKey { tenant, name, version, locales, is_exact: false }).await
    }

    /// Finds the template of exactly this name. The languages are those of the templates that it refers to.
    pub(crate) async fn find_exactly(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
        locales: &[MailLocale],
    ) -> Result<TemplateLookup, StoreError> {
        let (tenant, name, locales) = (tenant.clone(), name.clone(), locales.to_vec());
        self.look_up(TemplateKey { tenant, name, version, locales, is_exact: true }).await
    }

    async fn look_up(&self, key: TemplateKey) -> Result<TemplateLookup, StoreError> {
        let generation = self.store.generation();
        if let Some(known) = self.known.get(&key, generation) {
            return Ok(Ok(known));
        }
        let TemplateKey { tenant, name, version, locales, is_exact } = &key;
        let found = match *is_exact || locales.is_empty() {
            true => self.store.template(tenant, name, *version).await?,
            false => self.of_language(tenant, name, *version, locales).await?,
        };
        let Some(template) = found else {
            return Ok(Err(missing(name, *version, locales)));
        };
        let found = self.compile(&template, locales).await?;
        if let Ok(compiled) = &found {
            let bytes = compiled.source_bytes.saturating_mul(COMPILED_WEIGHT);
            self.known.put_sized(key, generation, Arc::clone(compiled), bytes);
        }
        Ok(found)
    }

    /// The template in the first of these languages that it has, or without any. A named version is one of
    /// that template, so another language never stands in for a version that does not exist.
    async fn of_language(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
        locales: &[MailLocale],
    ) -> Result<Option<Template>, StoreError> {
        let localised = locales.iter().filter_map(|locale| name.in_locale(locale));
        for name in localised.chain([name.clone()]) {
            if let Some(latest) = self.store.template(tenant, &name, None).await? {
                return match version {
                    Some(version) if version != latest.version => {
                        self.store.template(tenant, &name, Some(version)).await
                    }
                    _ => Ok(Some(latest)),
                };
            }
        }
        Ok(None)
    }

    /// Compiles a template together with those it refers to, in their latest versions and in the first of
    /// these languages that they have. A missing one may be optional: the compiler decides.
    pub(crate) async fn compile(
        &self,
        template: &Template,
        locales: &[MailLocale],
    ) -> Result<TemplateLookup, StoreError> {
        let own = source(template);
        let mut wanted = match own.check().and_then(|()| own.references()) {
            Ok(names) => names,
            Err(error) => return Ok(Err(fault(&error))),
        };
        let mut asked = BTreeSet::from([own.name.clone()]);
        let mut source_bytes = bytes_of(&own);
        let mut closure = BTreeMap::from([(own.name.clone(), own)]);
        while let Some(name) = wanted.pop_first() {
            if !asked.insert(name.clone()) {
                continue;
            }
            if asked.len() > CLOSURE_MAX {
                let message = format!("it refers to more than {CLOSURE_MAX} templates: use fewer");
                return Ok(Err(FieldFault::new("template", message)));
            }
            let Ok(parsed) = name.parse::<TemplateName>() else { continue };
            let Some(referred) = self.of_language(&template.tenant, &parsed, None, locales).await? else {
                continue;
            };
            // The others know it by the name that they refer to.
            let referred = TemplateSource { name: name.clone(), ..source(&referred) };
            source_bytes += bytes_of(&referred);
            if source_bytes > CLOSURE_BYTES_MAX {
                let message = format!(
                    "it and the templates it refers to have more than {CLOSURE_BYTES_MAX} bytes together: use fewer"
                );
                return Ok(Err(FieldFault::new("template", message)));
            }
            match referred.references() {
                Ok(names) => wanted.extend(names),
                Err(error) => return Ok(Err(fault(&error))),
            }
            closure.insert(name, referred);
        }
        let compiled = TemplateSet::new(closure.into_values()).map(|set| CompiledTemplate {
            name: template.name.to_string(),
            version: template.version,
            locale: template.locale().filter(|locale| locales.contains(locale)),
            inline_css: template.inline_css,
            set,
            source_bytes,
        });
        Ok(compiled.map(Arc::new).map_err(|error| fault(&error)))
    }
}

/// The fault of a template that does not exist in any of these languages.
fn missing(name: &TemplateName, version: Option<i64>, locales: &[MailLocale]) -> FieldFault {
    let which = version.map(|version| format!(" in version {version}")).unwrap_or_default();
    let localised = locales.first().and_then(|locale| name.in_locale(locale));
    let closest = localised.map(|name| format!(", nor {name}")).unwrap_or_default();
    let message = format!("there is no template {name}{which}{closest}; make it with POST /v1/templates");
    FieldFault::new("template.name", message)
}

fn bytes_of(source: &TemplateSource) -> usize {
    let parts = [Some(&source.subject), source.html.as_ref(), source.text.as_ref(), source.mjml.as_ref()];
    parts.into_iter().flatten().map(String::len).sum()
}

fn source(template: &Template) -> TemplateSource {
    TemplateSource {
        name: template.name.to_string(),
        subject: template.subject.clone(),
        html: template.html.clone(),
        text: template.text.clone(),
        mjml: template.mjml.clone(),
        layout: template.layout.as_ref().map(ToString::to_string),
    }
}

/// Turns a fault of a template into a fault of the message that uses it.
fn fault(error: &TemplateError) -> FieldFault {
    let field = match error.part {
        Some(part) => format!("template.{part}"),
        None => "template".to_owned(),
    };
    FieldFault::new(field, error.to_string())
}
