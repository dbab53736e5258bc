//! A compiled template with all the templates that it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde_json::Map;

use super::instrument::TemplateReference;
use super::layout::CONTENT;
use super::part::TemplatePart;
use super::{
    OUTPUT_BYTES_MAX, SUBJECT_BYTES_MAX, TemplateError, TemplateErrorKind as ReportKind, TemplateFault,
    TemplateSource,
};
use super::{allowance, mjml, sandbox};
use crate::html;

/// A rendered template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedTemplate {
    /// One line, without spaces around it.
    pub subject: String,
    /// The html, from the html or the MJML part. Not yet checked for scripts.
    pub html: Option<String>,
    /// The text, from the text part or else made from the html.
    pub text: Option<String>,
}

/// Compiled templates that refer only to each other. Immutable, and cheap to share.
pub struct TemplateSet {
    environment: Environment<'static>,
    parts: BTreeMap<String, BTreeSet<TemplatePart>>,
}

impl std::fmt::Debug for TemplateSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemplateSet").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl TemplateSet {
    /// Compiles templates. All that they extend, include and import must be among them, without a cycle.
    pub fn new(sources: impl IntoIterator<Item = TemplateSource>) -> Result<Self, TemplateError> {
        let mut set = Self { environment: sandbox::environment(), parts: BTreeMap::new() };
        let (mut references, mut layouts) = (BTreeMap::new(), Vec::new());
        let mut blocks: BTreeMap<PartKey, BTreeSet<String>> = BTreeMap::new();
        for source in sources {
            let layout = source.layout_name();
            for (part, instrumented) in source.instrumented()? {
                if let Some(layout) = layout.as_ref().filter(|_| part != TemplatePart::Subject) {
                    layouts.push(((source.name.clone(), part), layout.clone()));
                }
                blocks.insert((source.name.clone(), part), instrumented.blocks);
                let name = format!("{}.{}", source.name, part.name());
                let added = set.environment.add_template_owned(name, instrumented.source);
                added.map_err(|error| TemplateError::from_engine(&source.name, part, &error))?;
                references.insert((source.name.clone(), part), instrumented.references);
                set.parts.entry(source.name.clone()).or_default().insert(part);
            }
        }
        set.check_references(&references)?;
        layouts.iter().try_for_each(|(of, layout)| check_layout(of, layout, &blocks, &references))?;
        Ok(set)
    }

    /// Renders all parts of a template with the same variables.
    pub fn render(
        &self,
        name: &str,
        variables: &Map<String, serde_json::Value>,
    ) -> Result<RenderedTemplate, TemplateError> {
        let whole = |kind, message: String| TemplateError::new(name, None, TemplateFault::new(kind, message));
        let parts = self.parts.get(name);
        let parts = parts.ok_or_else(|| whole(ReportKind::UnknownTemplate, "does not exist".to_owned()))?;
        let variables = Value::from(Serde(variables));
        allowance::check_variables(&variables)
            .map_err(|bound| whole(bound.into(), format!("variables: {bound}")))?;

        let subject = self.render_part(name, TemplatePart::Subject, &variables, SUBJECT_BYTES_MAX)?;
        let subject = subject.trim().to_owned();
        if let Some(bad) = subject.chars().find(|c| c.is_control()) {
            let what = if matches!(bad, '\r' | '\n') { "a line break" } else { "a control character" };
            let message = format!("the subject contains {what} (from a variable?): remove it");
            return Err(TemplateError::new(
                name,
                Some(TemplatePart::Subject),
                TemplateFault::new(ReportKind::Value, message),
            ));
        }
        let html = if parts.contains(&TemplatePart::Mjml) {
            let source = self.render_part(name, TemplatePart::Mjml, &variables, mjml::SOURCE_BYTES_MAX)?;
            Some(
                mjml::to_html(&source)
                    .map_err(|fault| TemplateError::new(name, Some(TemplatePart::Mjml), fault))?,
            )
        } else if parts.contains(&TemplatePart::Html) {
            Some(self.render_part(name, TemplatePart::Html, &variables, OUTPUT_BYTES_MAX)?)
        } else {
            None
        };
        let text = if parts.contains(&TemplatePart::Text) {
            Some(self.render_part(name, TemplatePart::Text, &variables, OUTPUT_BYTES_MAX)?)
        } else {
            html.as_deref().map(html::to_text).transpose().map_err(|error| {
                TemplateError::new(
                    name,
                    Some(TemplatePart::Text),
                    TemplateFault::new(ReportKind::TooLarge, error.to_string()),
                )
            })?
        };
        Ok(RenderedTemplate { subject, html, text })
    }

    fn render_part(
        &self,
        name: &str,
        part: TemplatePart,
        variables: &Value,
        bytes_max: usize,
    ) -> Result<String, TemplateError> {
        let with_location = |error: &minijinja::Error| TemplateError::from_engine(name, part, error);
        let template = self
            .environment
            .get_template(&format!("{name}.{}", part.name()))
            .map_err(|error| with_location(&error))?;
        let mut output = BoundedOutput { bytes: Vec::new(), bytes_max };
        template.render_captured_to(variables.clone(), &mut output).map_err(|error| with_location(&error))?;
        // The engine writes whole strings, so this cannot fail.
        String::from_utf8(output.bytes).map_err(|_| {
            TemplateError::new(
                name,
                Some(part),
                TemplateFault::new(ReportKind::Value, "gives bytes that are no text"),
            )
        })
    }

    fn check_references(&self, references: &References) -> Result<(), TemplateError> {
        for ((template, part), named) in references {
            for reference in named {
                let found = reference.names.iter().any(|name| self.has(name, *part));
                if !found && !reference.may_be_missing {
                    return Err(self.unknown(template, *part, reference));
                }
            }
        }
        let mut done = BTreeSet::new();
        references.keys().try_for_each(|node| check_circles(node, references, &mut done))
    }

    fn has(&self, template: &str, part: TemplatePart) -> bool {
        self.parts.get(template).is_some_and(|parts| parts.contains(&part))
    }

    fn unknown(&self, template: &str, part: TemplatePart, reference: &TemplateReference) -> TemplateError {
        let name = &reference.names[0];
        let message = if self.parts.contains_key(name) {
            format!("template \"{name}\" has no {} part: add one", part.name())
        } else {
            format!("template \"{name}\" does not exist: create it, or correct the name")
        };
        TemplateError::new(
            template,
            Some(part),
            TemplateFault::new(ReportKind::UnknownTemplate, message).at(reference.line),
        )
    }
}

type PartKey = (String, TemplatePart);
type References = BTreeMap<PartKey, Vec<TemplateReference>>;

/// Refuses a cycle of references from a part. It uses an explicit stack, because a chain may be as long as
/// there are templates.
fn check_circles(
    from: &PartKey,
    references: &References,
    done: &mut BTreeSet<PartKey>,
) -> Result<(), TemplateError> {
    let mut path: Vec<(PartKey, Vec<PartKey>)> = vec![(from.clone(), targets(from, references))];
    while let Some((node, left)) = path.last_mut() {
        let Some(next) = left.pop() else {
            done.insert(node.clone());
            path.pop();
            continue;
        };
        if let Some(at) = path.iter().position(|(seen, _)| *seen == next) {
            let names = path[at..].iter().map(|((name, _), _)| name.as_str()).chain([next.0.as_str()]);
            let circle = names.collect::<Vec<_>>().join(" → ");
            let message = format!("refers to itself ({circle}): break the circle");
            return Err(TemplateError::new(
                &next.0,
                Some(next.1),
                TemplateFault::new(ReportKind::Cyclic, message),
            ));
        }
        if !done.contains(&next) {
            let targets = targets(&next, references);
            path.push((next, targets));
        }
    }
    Ok(())
}

/// Refuses a layout without a place for the content, which would disappear without a word. Another template
/// may define the block for it.
fn check_layout(
    (template, part): &PartKey,
    layout: &str,
    blocks: &BTreeMap<PartKey, BTreeSet<String>>,
    references: &References,
) -> Result<(), TemplateError> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![(layout.to_owned(), *part)]);
    while let Some(node) = open.pop() {
        if blocks.get(&node).is_some_and(|blocks| blocks.contains(CONTENT)) {
            return Ok(());
        }
        if seen.insert(node.clone()) {
            open.extend(targets(&node, references));
        }
    }
    let message = format!(
        "the layout \"{layout}\" has no place for the content: write {{% block {CONTENT} %}}{{% endblock %}} in its {} part",
        part.name()
    );
    Err(TemplateError::new(template, Some(*part), TemplateFault::new(ReportKind::Syntax, message)))
}

fn targets(node: &PartKey, references: &References) -> Vec<PartKey> {
    let named = references.get(node).into_iter().flatten().flat_map(|reference| &reference.names);
    let nodes = named.map(|name| (name.clone(), node.1));
    nodes.filter(|node| references.contains_key(node)).collect()
}

/// An output that fails when it exceeds its maximum.
struct BoundedOutput {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::Error::other("the output is full"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
