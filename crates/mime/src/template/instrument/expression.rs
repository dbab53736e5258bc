//! Instruments expressions, which make, read and compare values.
//!
//! The parser gives the span of a node without brackets. It is used only where it is exact; an expression
//! whose span is not exact is refused, with a suggestion to rewrite it.

use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, Expr, Filter, Spanned, Test};

use super::{TemplateEdit, TemplateWalk, end, refused, start};
use crate::template::{TemplateErrorKind as ReportKind, TemplateFault, allowance::SCALAR_FILTERS, sandbox};

/// The number of terms of a sum between two measurements: each measurement adds a level of brackets, and the
/// parser allows few.
const TERMS: usize = 8;

impl<'s> TemplateWalk<'s> {
    pub(super) fn expressions(&mut self, expressions: &[Expr<'s>]) -> Result<(), TemplateFault> {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }

    pub(super) fn optional(&mut self, expression: &Option<Expr<'s>>) -> Result<(), TemplateFault> {
        expression.iter().try_for_each(|expression| self.expression(expression))
    }

    pub(super) fn arguments(&mut self, arguments: &[CallArg<'s>]) -> Result<(), TemplateFault> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value),
            CallArg::PosSplat(value) | CallArg::KwargSplat(value) => Err(refused(
                value.span(),
                "arguments cannot be spread with * or **: write them out".to_owned(),
            )),
        })
    }

    pub(super) fn expression(&mut self, expression: &Expr<'s>) -> Result<(), TemplateFault> {
        match expression {
            Expr::Var(node) if sandbox::REMOVED_FUNCTIONS.contains(&node.id) => {
                Err(refused(node.span(), format!("{} is not available in templates", node.id)))
            }
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(node) => {
                let Some(root) = root(&node.expr) else {
                    let message = "only a variable can be sliced: set one to this value first";
                    return Err(refused(node.span(), message.to_owned()));
                };
                self.insert(root, "(");
                self.expression(&node.expr)?;
                [&node.start, &node.stop, &node.step]
                    .into_iter()
                    .try_for_each(|bound| self.optional(bound))?;
                self.insert(end(node.span()), "|_within)");
                Ok(())
            }
            Expr::UnaryOp(node) => self.expression(&node.expr),
            Expr::BinOp(node) => match node.op {
                BinOpKind::Add | BinOpKind::Concat => self.sum(node, true),
                BinOpKind::Mul => {
                    self.insert(start(node.span()), "_times(");
                    self.expression(&node.left)?;
                    self.replace_star(end(node.left.span()))?;
                    self.expression(&node.right)?;
                    self.insert(end(node.span()), ")");
                    Ok(())
                }
                BinOpKind::Eq
                | BinOpKind::Ne
                | BinOpKind::Lt
                | BinOpKind::Lte
                | BinOpKind::Gt
                | BinOpKind::Gte
                | BinOpKind::In => {
                    self.expression(&node.left)?;
                    self.compared(&node.right, end(node.span()))
                }
                BinOpKind::Sub
                | BinOpKind::Div
                | BinOpKind::FloorDiv
                | BinOpKind::Rem
                | BinOpKind::Pow
                | BinOpKind::ScAnd
                | BinOpKind::ScOr => {
                    self.expression(&node.left)?;
                    self.expression(&node.right)
                }
            },
            Expr::Compare(node) => {
                self.expression(&node.expr)?;
                node.ops.iter().try_for_each(|next| self.compared(&next.expr, end(next.expr.span())))
            }
            Expr::IfExpr(node) => {
                self.expression(&node.test_expr)?;
                self.expression(&node.true_expr)?;
                self.optional(&node.false_expr)
            }
            Expr::Filter(node) => self.filter(node),
            Expr::Test(node) => self.test(node),
            Expr::GetAttr(node) => self.expression(&node.expr),
            Expr::GetItem(node) => {
                self.expression(&node.expr)?;
                self.expression(&node.subscript_expr)
            }
            Expr::Call(node) => {
                self.expression(&node.expr)?;
                self.arguments(&node.args)?;
                // The methods of `loop` compare their arguments.
                if let Expr::GetAttr(_) = node.expr {
                    self.read_arguments(&node.args);
                }
                Ok(())
            }
            Expr::List(node) => self.container(node.span(), &node.items, &[]),
            Expr::Tuple(node) => self.container(node.span(), &node.items, &[]),
            Expr::Map(node) => self.container(node.span(), &node.keys, &node.values),
        }
    }

    /// A sum, or the left part of one.
    fn sum(&mut self, node: &Spanned<BinOp<'s>>, whole: bool) -> Result<(), TemplateFault> {
        let measured = whole || terms(node).is_multiple_of(TERMS);
        if measured {
            self.insert(start(node.span()), "(");
        }
        match left_sum(node) {
            Some(left) => self.sum(left, false)?,
            None => self.expression(&node.left)?,
        }
        self.expression(&node.right)?;
        if measured {
            self.insert(end(node.span()), ")|_within");
        }
        Ok(())
    }

    fn filter(&mut self, node: &Spanned<Filter<'s>>) -> Result<(), TemplateFault> {
        if !sandbox::has_filter(node.name) {
            return Err(refused(node.span(), format!("there is no filter {}", node.name)));
        }
        if let Some(input) = &node.expr {
            self.expression(input)?;
            self.read_before('|', start(node.span()))?;
        }
        self.arguments(&node.args)?;
        if !SCALAR_FILTERS.contains(&node.name) {
            self.insert(end(node.span()), "|_within");
        }
        Ok(())
    }

    fn test(&mut self, node: &Spanned<Test<'s>>) -> Result<(), TemplateFault> {
        if node.name == "in" {
            return Err(refused(node.span(), "write \"a in b\" for \"a is in b\"".to_owned()));
        }
        if !sandbox::has_test(node.name) {
            return Err(refused(node.span(), format!("there is no test {}", node.name)));
        }
        self.expression(&node.expr)?;
        self.read_before("is", start(node.span()))?;
        self.arguments(&node.args)
    }

    /// The right side of a comparison. A comparison reads no more of the left side than of the right.
    fn compared(&mut self, right: &Expr<'s>, end: usize) -> Result<(), TemplateFault> {
        self.expression(right)?;
        if !matches!(right, Expr::Const(_)) {
            self.insert(end, "|_read");
        }
        Ok(())
    }

    fn read_arguments(&mut self, arguments: &[CallArg<'s>]) {
        for argument in arguments {
            if let CallArg::Pos(value) = argument
                && !matches!(value, Expr::Const(_))
            {
                self.insert(end(value.span()), "|_read");
            }
        }
    }

    fn container(&mut self, span: Span, items: &[Expr<'s>], more: &[Expr<'s>]) -> Result<(), TemplateFault> {
        // A constant container is no larger than the source.
        if items.iter().chain(more).all(|item| matches!(item, Expr::Const(_))) {
            return Ok(());
        }
        self.insert(start(span), "(");
        self.expressions(items)?;
        self.expressions(more)?;
        self.insert(end(span), "|_within)");
        Ok(())
    }

    /// Replaces the `*` after the left side: only spaces and closing brackets are between them.
    fn replace_star(&mut self, after: usize) -> Result<(), TemplateFault> {
        let offset = self.source[after..].find('*').map(|at| after + at).ok_or_else(unreadable)?;
        self.edits.push(TemplateEdit { offset, removed: 1, text: "," });
        Ok(())
    }

    /// Inserts `_read` before the sign of a filter or a test: only spaces and perhaps a `not` are between
    /// sign and name.
    fn read_before(&mut self, sign: impl Into<String>, name: usize) -> Result<(), TemplateFault> {
        let offset = self.source[..name].rfind(&sign.into()).ok_or_else(unreadable)?;
        self.insert(offset, "|_read ");
        Ok(())
    }
}

fn left_sum<'a, 's>(node: &'a BinOp<'s>) -> Option<&'a Spanned<BinOp<'s>>> {
    match &node.left {
        Expr::BinOp(left) if matches!(left.op, BinOpKind::Add | BinOpKind::Concat) => Some(left),
        _ => None,
    }
}

fn terms(node: &Spanned<BinOp<'_>>) -> usize {
    std::iter::successors(Some(node), |node| left_sum(node)).count()
}

/// The start of an expression that is a variable or a constant with attributes, subscripts and calls.
fn root(expression: &Expr<'_>) -> Option<usize> {
    let mut expression = expression;
    loop {
        expression = match expression {
            Expr::Var(node) => return Some(start(node.span())),
            Expr::Const(node) => return Some(start(node.span())),
            Expr::GetAttr(node) => &node.expr,
            Expr::GetItem(node) => &node.expr,
            Expr::Call(node) => &node.expr,
            Expr::Slice(node) => &node.expr,
            _ => return None,
        }
    }
}

fn unreadable() -> TemplateFault {
    TemplateFault::new(ReportKind::Syntax, "an expression cannot be read: write it in a simpler way")
}
