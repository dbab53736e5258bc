//! Templates: found with all that they extend and include, compiled, and remembered for a moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use postway_domain::{Template, TemplateName, TenantId};
use postway_mime::template::{Rendered, TemplateError, TemplateSet, TemplateSource};
use postway_store::{Store, StoreError};
use serde_json::{Map, Value};

use crate::{cache::ttl_cache::Memory, refusal::FieldError};

/// How many templates one may refer to, itself included, also by way of others.
const CLOSURE_MAX: usize = 32;
/// How many bytes of source all of them may have together.
const CLOSURE_BYTES_MAX: usize = 4 * Template::BYTES_MAX;
/// How many compiled templates are remembered, and what they may take together.
const REMEMBERED_MAX: usize = 500;
const REMEMBERED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A compiled template takes about so many times its source.
const COMPILED_WEIGHT: usize = 8;

/// A template, ready to be rendered.
pub(crate) struct InUse {
    pub name: String,
    pub version: i64,
    set: TemplateSet,
    /// Of source, those it refers to included.
    source_bytes: usize,
}

impl InUse {
    /// Subject and texts with these variables.
    pub(crate) fn render(&self, variables: &Map<String, Value>) -> Result<Rendered, FieldError> {
        self.set.render(&self.name, variables).map_err(|error| fault(&error))
    }
}

/// A template, or what is wrong with the name given.
pub(crate) type Found = Result<Arc<InUse>, FieldError>;

/// The templates of all tenants, as far as they were asked for.
pub(crate) struct Shelf {
    store: Arc<dyn Store>,
    known: Memory<(TenantId, TemplateName, Option<i64>), Arc<InUse>>,
}

impl Shelf {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Memory::of_bytes(REMEMBERED_MAX, REMEMBERED_BYTES_MAX) }
    }

    /// Finds a template in this version, or in its latest.
    pub(crate) async fn find(
        &self,
        tenant: &TenantId,
        name: &TemplateName,
        version: Option<i64>,
    ) -> Result<Found, StoreError> {
        let key = (tenant.clone(), name.clone(), version);
        let generation = self.store.generation();
        if let Some(known) = self.known.get(&key, generation) {
            return Ok(Ok(known));
        }
        let Some(template) = self.store.template(tenant, name, version).await? else {
            let which = version.map(|version| format!(" in version {version}")).unwrap_or_default();
            let message = format!("there is no template {name}{which}; make it with POST /v1/templates");
            return Ok(Err(FieldError::new("template.name", message)));
        };
        let found = self.compile(&template).await?;
        if let Ok(in_use) = &found {
            let bytes = in_use.source_bytes.saturating_mul(COMPILED_WEIGHT);
            self.known.put_sized(key, generation, Arc::clone(in_use), bytes);
        }
        Ok(found)
    }

    /// Compiles a template together with those it refers to, in their latest versions. One that is not there may be one
    /// that need not be there: that is for the compiler to say.
    pub(crate) async fn compile(&self, template: &Template) -> Result<Found, StoreError> {
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
                return Ok(Err(FieldError::new("template", message)));
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
                return Ok(Err(FieldError::new("template", message)));
            }
            match referred.references() {
                Ok(names) => wanted.extend(names),
                Err(error) => return Ok(Err(fault(&error))),
            }
            closure.insert(name, referred);
        }
        let in_use = TemplateSet::new(closure.into_values()).map(|set| InUse {
            name: template.name.to_string(),
            version: template.version,
            set,
            source_bytes,
        });
        Ok(in_use.map(Arc::new).map_err(|error| fault(&error)))
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

/// A template's fault as a fault of the message that uses it.
fn fault(error: &TemplateError) -> FieldError {
    let field = match error.part {
        Some(part) => format!("template.{part}"),
        None => "template".to_owned(),
    };
    FieldError::new(field, error.to_string())
}
