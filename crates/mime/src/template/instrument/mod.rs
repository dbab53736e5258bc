//! Rewrites a template so that growing values are measured, and collects the templates that it refers to.
//!
//! The engine's fuel counts instructions, not bytes: `{% set x = x ~ x %}` forty times over is forty
//! instructions and a terabyte. Operators cannot be overridden, but the source can be rewritten:
//!
//! | written | compiled |
//! |---|---|
//! | `a ~ b`, `a + b` | `(a ~ b)\|_within`, in long sums once in eight |
//! | `a * b` | `_times(a , b)`: a check after the operation would be too late |
//! | `[a, b]`, `{"k": a}`, `(a, b)` | `([a, b]\|_within)`: a list of lists of lists is small, but its text is not |
//! | `a\|filter` | `a\|_read\|filter\|_within`, without the last if the filter gives a scalar |
//! | `a == b`, `a in b`, `a is test` | `a == b\|_read`, `a in b\|_read`, `a \|_read is test`: these read whole values in one instruction |
//! | `a[1:9]` | `(a[1:9]\|_within)` |
//! | long text | divided by `{##}` every few hundred bytes, since the engine counts a text as one instruction, however long it is |
//!
//! No line is added, so that line numbers in errors are the author's.

mod expression;
mod text;

use std::collections::BTreeSet;

use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{Span, parse};
use minijinja::syntax::SyntaxConfig;

use super::{TemplateErrorKind as ReportKind, TemplateFault, syntax};

/// A source that is safe to compile and run.
#[derive(Debug)]
pub(super) struct InstrumentedSource {
    pub(super) source: String,
    pub(super) references: Vec<TemplateReference>,
    /// The blocks that it defines.
    pub(super) blocks: BTreeSet<String>,
    /// Whether it extends another template.
    pub(super) extends: bool,
}

/// One `extends`, `include` or `import`.
#[derive(Debug)]
pub(super) struct TemplateReference {
    /// The names; the first that exists is used.
    pub(super) names: Vec<String>,
    pub(super) may_be_missing: bool,
    pub(super) line: usize,
}

/// Checks and rewrites one part.
pub(super) fn instrument(source: &str) -> Result<InstrumentedSource, TemplateFault> {
    syntax::check(source)?;
    let tree = parse(source, "template", SyntaxConfig::default())
        .map_err(|error| TemplateFault::from_engine(&error))?;
    let mut walk = TemplateWalk {
        source,
        edits: Vec::new(),
        references: Vec::new(),
        blocks: BTreeSet::new(),
        extends: false,
    };
    walk.statement(&tree)?;
    let TemplateWalk { edits, references, blocks, extends, .. } = walk;
    Ok(InstrumentedSource { source: apply(source, edits), references, blocks, extends })
}

/// A text to insert at an offset, in place of `removed` bytes.
struct TemplateEdit {
    offset: usize,
    removed: usize,
    text: &'static str,
}

/// Applies the edits in order of offset; those at one offset in the order in which they were made.
fn apply(source: &str, mut edits: Vec<TemplateEdit>) -> String {
    edits.sort_by_key(|edit| edit.offset);
    let mut out = String::with_capacity(source.len() + edits.len() * 8);
    let mut copied = 0;
    for edit in edits {
        out.push_str(&source[copied..edit.offset]);
        out.push_str(edit.text);
        copied = edit.offset + edit.removed;
    }
    out.push_str(&source[copied..]);
    out
}

struct TemplateWalk<'s> {
    source: &'s str,
    edits: Vec<TemplateEdit>,
    references: Vec<TemplateReference>,
    blocks: BTreeSet<String>,
    extends: bool,
}

impl<'s> TemplateWalk<'s> {
    fn statements(&mut self, statements: &[Stmt<'s>]) -> Result<(), TemplateFault> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'s>) -> Result<(), TemplateFault> {
        match statement {
            Stmt::Template(node) => self.statements(&node.children),
            Stmt::EmitExpr(node) => self.expression(&node.expr),
            Stmt::EmitRaw(node) => self.text(node.raw, node.span()),
            Stmt::ForLoop(node) => {
                self.expression(&node.iter)?;
                self.optional(&node.filter_expr)?;
                self.statements(&node.body)?;
                self.statements(&node.else_body)
            }
            Stmt::IfCond(node) => {
                self.expression(&node.expr)?;
                self.statements(&node.true_body)?;
                self.statements(&node.false_body)
            }
            Stmt::WithBlock(node) => {
                node.assignments.iter().try_for_each(|(_, value)| self.expression(value))?;
                self.statements(&node.body)
            }
            Stmt::Set(node) => self.assigned(&node.expr),
            Stmt::SetBlock(node) => {
                self.optional(&node.filter)?;
                self.statements(&node.body)
            }
            Stmt::AutoEscape(node) => {
                self.expression(&node.enabled)?;
                self.statements(&node.body)
            }
            Stmt::FilterBlock(node) => {
                self.expression(&node.filter)?;
                self.statements(&node.body)
            }
            Stmt::Block(node) => {
                self.blocks.insert(node.name.to_owned());
                self.statements(&node.body)
            }
            Stmt::Import(node) => self.reference(&node.expr, "import", false),
            Stmt::FromImport(node) => self.reference(&node.expr, "from", false),
            Stmt::Extends(node) => {
                self.extends = true;
                self.reference(&node.name, "extends", false)
            }
            Stmt::Include(node) => self.reference(&node.name, "include", node.ignore_missing),
            Stmt::Macro(node) => {
                self.expressions(&node.defaults)?;
                self.statements(&node.body)
            }
            Stmt::CallBlock(node) => {
                self.expression(&node.call.expr)?;
                self.arguments(&node.call.args)?;
                self.expressions(&node.macro_decl.defaults)?;
                self.statements(&node.macro_decl.body)
            }
            Stmt::Do(node) => {
                self.expression(&node.call.expr)?;
                self.arguments(&node.call.args)
            }
            Stmt::Continue(_) | Stmt::Break(_) => Ok(()),
        }
    }

    /// The value of a `set`. For a tuple without parentheses the parser gives a wrong span, so it is refused.
    fn assigned(&mut self, value: &Expr<'s>) -> Result<(), TemplateFault> {
        if let Expr::Tuple(tuple) = value
            && tuple.items.first().is_some_and(|first| start(first.span()) < start(tuple.span()))
        {
            return Err(refused(tuple.span(), "put the values of this set in parentheses".to_owned()));
        }
        self.expression(value)
    }

    fn reference(
        &mut self,
        name: &Expr<'s>,
        statement: &str,
        may_be_missing: bool,
    ) -> Result<(), TemplateFault> {
        let constant = |expression: &Expr<'s>| match expression {
            Expr::Const(node) => node.value.as_str().map(str::to_owned),
            _ => None,
        };
        let names = match name {
            Expr::List(list) => list.items.iter().map(constant).collect::<Option<Vec<_>>>(),
            name => constant(name).map(|name| vec![name]),
        };
        let line = usize::from(name.span().start_line);
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            let message = format!("the name in {{% {statement} %}} is computed: write it as a string");
            return Err(TemplateFault::new(ReportKind::Syntax, message).at(line));
        };
        self.references.push(TemplateReference { names, may_be_missing, line });
        Ok(())
    }

    fn insert(&mut self, offset: usize, text: &'static str) {
        self.edits.push(TemplateEdit { offset, removed: 0, text });
    }
}

fn refused(span: Span, message: String) -> TemplateFault {
    TemplateFault::new(ReportKind::Syntax, message).at(usize::from(span.start_line))
}

fn start(span: Span) -> usize {
    span.start_offset as usize
}

fn end(span: Span) -> usize {
    span.end_offset as usize
}

#[cfg(test)]
mod tests;
