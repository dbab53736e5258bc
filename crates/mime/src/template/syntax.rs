//! Checks a source before the engine's parser reads it.
//!
//! The parser limits the nesting of brackets and blocks, but not the length of a chain of operators, filters
//! or `elif`s. It makes a tree as deep as the chain is long, and compiling or dropping that tree overflows
//! the stack. So chains are counted here, token by token.

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::{TemplateErrorKind as ReportKind, TemplateFault};

/// The maximum number of operators, filters and subscripts in one expression, including those around it.
const LINKS_MAX: usize = 200;
const ELIFS_MAX: usize = 200;

/// Refuses expressions whose tree would be too deep.
pub(super) fn check(source: &str) -> Result<(), TemplateFault> {
    let mut chain = OperatorChain::default();
    let mut elifs = 0;
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| TemplateFault::from_engine(&error))?;
        if matches!(token, Token::Ident("elif")) {
            elifs += 1;
        }
        chain.take(&token);
        if chain.links > LINKS_MAX || elifs > ELIFS_MAX {
            return Err(too_long(span));
        }
    }
    Ok(())
}

fn too_long(span: Span) -> TemplateFault {
    let message = format!("an expression or an if has more than {LINKS_MAX} operators or branches: split it");
    TemplateFault::new(ReportKind::TooDeep, message).at(usize::from(span.start_line))
}

/// The number of links of the current expression and of those around it.
#[derive(Default)]
struct OperatorChain {
    /// The sum over `levels`.
    links: usize,
    /// One count for each open bracket, the innermost last.
    levels: Vec<usize>,
}

impl OperatorChain {
    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::VariableStart | Token::BlockStart => *self = Self { links: 0, levels: vec![0] },
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.link();
                self.levels.push(0);
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.links -= self.levels.pop().unwrap_or(0);
            }
            // The next item is a sibling of the previous one, not its child.
            Token::Comma => {
                self.links -= self.levels.last_mut().map_or(0, std::mem::take);
            }
            Token::Ident("and" | "or" | "not" | "if" | "else" | "is" | "in") => self.link(),
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Colon
            | Token::Assign
            | Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd => {}
            _ => self.link(),
        }
    }

    fn link(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            *level += 1;
            self.links += 1;
        }
    }
}
