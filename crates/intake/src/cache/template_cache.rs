//! Cached templates, compiled with everything that they extend and include.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use postway_domain::{Template, TemplateName, TenantId};
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

/// The cache of all tenants' templates.
pub(crate) struct TemplateCache {
    store: Arc<dyn Store>,
    known: TtlCache<(TenantId, TemplateName, Option<i64>), Arc<CompiledTemplate>>,
}

impl TemplateCache {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: TtlCache::with_byte_limit(CACHED_MAX, CACHED_BYTES_MAX) }
    }

    /// Finds a template in this version, or its latest.
    pub(crate) async fn find(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<TemplateLookup, StoreError> {
        let key = (tenant.clone(), name.clone(), version);
        let generation = self.store.generation();
        if let Some(known) = self.known.get(&key, generation) {
            return Ok(Ok(known));
        }
        let Some(template) = self.store.template(tenant, name, version).await? else {
            let which = version.map(|version| format!(" in version {version}")).unwrap_or_default();
            let message = format!("there is no template {name}{which}; make it with POST /v1/templates");
            return Ok(Err(FieldFault::new("template.name", message)));
        };
        let found = self.compile(&template).await?;
        if let Ok(compiled) = &found {
            let bytes = compiled.source_bytes.saturating_mul(COMPILED_WEIGHT);
            self.known.put_sized(key, generation, Arc::clone(compiled), bytes);
        }
        Ok(found)
    }

    /// Compiles a template together with those it refers to, in their latest versions. A missing one may be
    /// optional: the compiler decides.
    pub(crate) async fn compile(&self, template: &Template) -> Result<TemplateLookup, StoreError> {
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
            let Some(referred) = self.store.template(&template.tenant, &parsed, None).await? else {
                continue;
            };
            let referred = source(&referred);
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
            set,
            source_bytes,
        });
        Ok(compiled.map(Arc::new).map_err(|error| fault(&error)))
    }
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
