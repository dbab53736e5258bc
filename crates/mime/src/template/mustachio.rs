//! Translates Mustachio, Postmark's template language, to the language of our templates.
//!
//! A template whose subject begins with a [`MustachioHead`] is stored as its author wrote it, and translated
//! whenever it is compiled. So it is bounded like every other template, and the API shows the original
//! source.
//!
//! | Mustachio | here |
//! |---|---|
//! | `{{ a.b }}`, `{{{ a.b }}}`, `{{& a.b }}` | the value, escaped or raw; nothing if it is missing, a list or an object |
//! | `{{#a}}…{{/a}}`, `{{^a}}…{{/a}}`, `{{#a}}…{{^a}}…{{/a}}` | an `if`; paths within begin at `a` |
//! | `{{#each a}}…{{/each}}` | a `for`; paths within begin at the item |
//! | `{{ . }}`, `{{ ../a }}` | the start of paths, and one level up: the parent of an item is its list |
//! | `{{! … }}` | nothing |
//! | `{{{ @content }}}` in a layout | the content of the template that uses the layout |
//!
//! Partials (`{{> a }}`) and other delimiters (`{{= =}}`) are refused: Mustachio has neither. Only
//! identifiers of a tag reach the engine, and braces in the text around tags are escaped, so a template
//! cannot inject code of the engine's language.

use std::fmt;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::layout::{CONTENT, is_name};
use super::{TemplateErrorKind as ReportKind, TemplateFault};

const MARK: &str = "{#mustachio";
/// The longest head; a longer comment is an ordinary comment.
const HEAD_BYTES_MAX: usize = 400;
/// The maximum depth of sections, and the maximum number of steps of a path, including those of the sections
/// around it.
const DEPTH_MAX: usize = 32;

/// The comment at the beginning of the subject that marks a template as Mustachio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MustachioHead {
    /// Its numeric id besides its name.
    pub id: Option<u64>,
    /// The layout that it uses.
    pub layout: Option<String>,
    /// Whether it is a layout: each of its parts has one content placeholder.
    pub is_layout: bool,
    /// The template that this entry is an alias of.
    pub stands_for: Option<String>,
}

impl MustachioHead {
    /// The head of a subject and the text after it; `None` if the subject has no head.
    pub fn split(subject: &str) -> Option<(Self, &str)> {
        let (words, rest) = subject.strip_prefix(MARK)?.split_once("#}")?;
        if words.len() > HEAD_BYTES_MAX || !(words.is_empty() || words.starts_with(' ')) {
            return None;
        }
        let mut head = Self::default();
        for word in words.split_ascii_whitespace() {
            match word.split_once('=')? {
                ("id", id) => head.id = Some(id.parse().ok()?),
                ("layout", name) if is_name(name) => head.layout = Some(name.to_owned()),
                ("stands_for", name) if is_name(name) => head.stands_for = Some(name.to_owned()),
                ("is", "layout") => head.is_layout = true,
                _ => return None,
            }
        }
        Some((head, rest))
    }
}

impl fmt::Display for MustachioHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)?;
        if let Some(id) = self.id {
            write!(f, " id={id}")?;
        }
        if let Some(layout) = &self.layout {
            write!(f, " layout={layout}")?;
        }
        if let Some(name) = &self.stands_for {
            write!(f, " stands_for={name}")?;
        }
        if self.is_layout {
            f.write_str(" is=layout")?;
        }
        f.write_str("#}")
    }
}

/// Translates a body, with its content placeholder if it is a layout.
pub(super) fn translate_body(source: &str, head: &MustachioHead) -> Result<String, TemplateFault> {
    let (translated, places) = translate(source)?;
    if head.is_layout && places != 1 {
        let message = "The layout content placeholder must be present, and only once: {{{ @content }}}";
        return Err(TemplateFault::new(ReportKind::Syntax, message));
    }
    if !head.is_layout && places > 0 {
        return Err(TemplateFault::new(
            ReportKind::Syntax,
            "{{{ @content }}} is for layouts: this template is none",
        ));
    }
    Ok(translated)
}

/// Translates a subject, which cannot have a content placeholder.
pub(super) fn translate_subject(source: &str) -> Result<String, TemplateFault> {
    match translate(source)? {
        (translated, 0) => Ok(translated),
        _ => Err(TemplateFault::new(ReportKind::Syntax, "a subject has no place for content")),
    }
}

/// The translated source, and the number of content placeholders.
fn translate(source: &str) -> Result<(String, usize), TemplateFault> {
    let mut writer = MustachioWriter {
        out: String::with_capacity(source.len() * 2),
        open: Vec::new(),
        lists: Vec::new(),
        places: 0,
    };
    let (mut written, mut at) = (0, 0);
    while let Some(found) = source[at..].find("{{") {
        let start = at + found;
        let Some(tag) = MustachioTag::read(&source[start..]) else {
            at = start + 1;
            continue;
        };
        writer.text(&source[written..start]);
        let at_line = |message: String| {
            let line = source[..start].matches('\n').count() + 1;
            TemplateFault::new(ReportKind::Syntax, message).at(line)
        };
        writer.tag(&tag).map_err(at_line)?;
        at = start + tag.length;
        written = at;
    }
    writer.text(&source[written..]);
    match writer.open.last() {
        Some(section) => {
            let message = format!("{} is opened and not closed: close it", section.shown());
            Err(TemplateFault::new(ReportKind::Syntax, message))
        }
        None => Ok((writer.out, writer.places)),
    }
}

/// A tag: the text between braces.
struct MustachioTag<'s> {
    /// Whether it has three braces.
    raw: bool,
    inner: &'s str,
    length: usize,
}

impl<'s> MustachioTag<'s> {
    /// Reads the tag at the beginning of a text: it has no brace inside, and is closed with as many braces as
    /// it was opened.
    fn read(text: &'s str) -> Option<Self> {
        let braces = if text.starts_with("{{{") { 3 } else { 2 };
        let rest = &text[braces..];
        let end = rest.find(['{', '}']).filter(|end| *end > 0)?;
        let closed = rest[end..].starts_with(&"}}}"[..braces]);
        closed.then(|| Self { raw: braces == 3, inner: rest[..end].trim(), length: end + 2 * braces })
    }
}

/// The start of a path: the variables or the item of a loop, and steps from there.
#[derive(Clone, Default)]
struct MustachioOrigin<'s> {
    /// The number of the loop, from 1; 0 for the variables.
    of: usize,
    steps: Vec<&'s str>,
}

impl MustachioOrigin<'_> {
    /// The expression in the engine's language. Steps are identifiers, so they need no escaping.
    fn expression(&self) -> String {
        let steps = self.steps.iter().map(|step| format!("\"{step}\"")).collect::<Vec<_>>().join(", ");
        match (self.of, steps.is_empty()) {
            (0, _) => format!("_look({steps})"),
            (of, true) => format!("_item{of}"),
            (of, false) => format!("_look_in(_item{of}, {steps})"),
        }
    }
}

/// An open section.
struct MustachioSection<'s> {
    path: &'s str,
    is_each: bool,
    origin: MustachioOrigin<'s>,
}

impl MustachioSection<'_> {
    fn shown(&self) -> String {
        let each = if self.is_each { "each " } else { "" };
        format!("{{{{#{each}{}}}}}", self.path.chars().take(100).collect::<String>())
    }
}

struct MustachioWriter<'s> {
    out: String,
    open: Vec<MustachioSection<'s>>,
    /// The list of each loop.
    lists: Vec<MustachioOrigin<'s>>,
    places: usize,
}

impl<'s> MustachioWriter<'s> {
    /// Writes text so that the engine sees no tag in it, nor the beginning of one.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            self.out.push_str(before);
            let begins = after.is_empty() || after.starts_with(['{', '%', '#']);
            self.out.push_str(if begins { "{{ '{' }}" } else { "{" });
            rest = after;
        }
        self.out.push_str(rest);
    }

    fn tag(&mut self, tag: &MustachioTag<'s>) -> Result<(), String> {
        let inner = tag.inner;
        if tag.raw {
            return match inner {
                "@content" => {
                    self.places += 1;
                    self.out.push_str(&format!("{{% block {CONTENT} %}}{{% endblock %}}"));
                    Ok(())
                }
                path => self.value(path, true),
            };
        }
        let rest = |sign: char| inner.strip_prefix(sign).map(str::trim);
        match inner.chars().next() {
            Some('#') => match rest('#').and_then(|rest| rest.strip_prefix("each")) {
                Some(path) if path.is_empty() || path.starts_with(char::is_whitespace) => {
                    self.each(path.trim())
                }
                _ => self.section(rest('#').unwrap_or_default(), "if"),
            },
            Some('^') => self.section(rest('^').unwrap_or_default(), "if not"),
            Some('/') => self.close(rest('/').unwrap_or_default()),
            Some('&') => self.value(rest('&').unwrap_or_default(), true),
            Some('!') => Ok(()),
            Some('>') => Err("partials are not available: write the content out, or use a layout".to_owned()),
            Some('=') => Err("other delimiters are not available: use {{ and }}".to_owned()),
            _ => self.value(inner, false),
        }
    }

    fn value(&mut self, path: &'s str, raw: bool) -> Result<(), String> {
        let origin = self.resolve(path)?;
        let safe = if raw { "|safe" } else { "" };
        self.out.push_str(&format!("{{{{ _shown({}){safe} }}}}", origin.expression()));
        Ok(())
    }

    fn section(&mut self, path: &'s str, condition: &str) -> Result<(), String> {
        // This is the `else` branch of the open section, which ends here.
        if self.open.last().is_some_and(|section| !section.is_each && section.path == path) {
            self.close(path)?;
        }
        let origin = self.resolve(path)?;
        self.out.push_str(&format!("{{% {condition} {} %}}", origin.expression()));
        self.push(MustachioSection { path, is_each: false, origin })
    }

    fn each(&mut self, path: &'s str) -> Result<(), String> {
        if path.is_empty() {
            return Err("{{#each}} needs the name of a list: {{#each items}}".to_owned());
        }
        let list = self.resolve(path)?;
        let expression = list.expression();
        self.lists.push(list);
        let of = self.lists.len();
        self.out.push_str(&format!("{{% for _item{of} in _items({expression}) %}}"));
        self.push(MustachioSection { path, is_each: true, origin: MustachioOrigin { of, steps: Vec::new() } })
    }

    fn push(&mut self, section: MustachioSection<'s>) -> Result<(), String> {
        if self.open.len() == DEPTH_MAX {
            return Err(format!("sections are nested more than {DEPTH_MAX} deep: use fewer levels"));
        }
        self.open.push(section);
        Ok(())
    }

    fn close(&mut self, path: &str) -> Result<(), String> {
        let fits = |section: &MustachioSection<'_>| match section.is_each {
            true => path == "each",
            false => path == section.path,
        };
        match self.open.pop() {
            Some(section) if fits(&section) => {
                self.out.push_str(if section.is_each { "{% endfor %}" } else { "{% endif %}" });
                Ok(())
            }
            Some(section) => Err(format!("{} is open here: close that first", section.shown())),
            None => Err("nothing is open here that could be closed".to_owned()),
        }
    }

    /// Resolves a path at this position.
    fn resolve(&self, path: &'s str) -> Result<MustachioOrigin<'s>, String> {
        let mut origin =
            self.open.last().map_or_else(MustachioOrigin::default, |section| section.origin.clone());
        let mut rest = path;
        while let Some(below) = rest.strip_prefix("../") {
            origin = self.parent(origin);
            rest = below;
        }
        let invalid = || {
            let shown: String = path.chars().take(100).collect();
            format!("The path '{shown}' is not valid: use letters, digits, _ and dots, with ../ before them")
        };
        if rest == "." || (rest.is_empty() && path.ends_with("../")) {
            return Ok(origin);
        }
        for step in rest.split('.') {
            if step.is_empty() || !step.chars().all(|c| c.is_alphanumeric() || c == '_') {
                return Err(invalid());
            }
            origin.steps.push(step);
        }
        match origin.steps.len() > DEPTH_MAX {
            true => Err(format!("a path has more than {DEPTH_MAX} steps: use fewer levels")),
            false => Ok(origin),
        }
    }

    /// One level up; the parent of the variables is themselves.
    fn parent(&self, mut origin: MustachioOrigin<'s>) -> MustachioOrigin<'s> {
        match (origin.steps.pop(), origin.of) {
            (None, of @ 1..) => self.lists[of - 1].clone(),
            _ => origin,
        }
    }
}

pub(super) fn add_functions(environment: &mut Environment<'static>) {
    environment.add_function("_look", look);
    environment.add_function("_look_in", look_in);
    environment.add_function("_shown", shown);
    environment.add_function("_items", items);
}

/// Looks up a value among the variables; without a path it is true.
fn look(state: &State, steps: Rest<String>) -> Value {
    let Some((first, rest)) = steps.split_first() else { return Value::from(true) };
    // The engine has functions of some names, which are not variables.
    let found = state.lookup(first).filter(is_of_json);
    walk(found.unwrap_or(Value::from(())), rest)
}

fn look_in(value: Value, steps: Rest<String>) -> Value {
    walk(value, &steps)
}

/// Follows the steps from a value through its objects; null if a step does not exist.
fn walk(value: Value, steps: &[String]) -> Value {
    let nothing = || Value::from(());
    steps.iter().fold(value, |value, step| match value.kind() {
        ValueKind::Map => value.get_attr(step).ok().filter(is_of_json).unwrap_or_else(nothing),
        _ => nothing(),
    })
}

fn is_of_json(value: &Value) -> bool {
    let kinds = [
        ValueKind::None,
        ValueKind::Bool,
        ValueKind::Number,
        ValueKind::String,
        ValueKind::Seq,
        ValueKind::Map,
    ];
    kinds.contains(&value.kind())
}

/// A value as it is printed: nothing for null, lists and objects.
fn shown(value: Value) -> Value {
    match value.kind() {
        ValueKind::Bool | ValueKind::Number | ValueKind::String => value,
        _ => Value::from(""),
    }
}

/// The items of a list; a missing value has none.
fn items(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq => Ok(value),
        _ if !value.is_true() => Ok(Value::from(Vec::<Value>::new())),
        kind => {
            let message = format!("{{{{#each}}}} is for lists, and this value is a {kind}");
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}
