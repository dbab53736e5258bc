//! The tree builder's view of a document, reduced to names and depths.
//!
//! html5ever builds trees through a sink. This one keeps no tree, only what the builder asks back: the name
//! of an open element, and how deep it is. So memory does not grow with the document, and dropping the sink
//! cannot recurse.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, ExpandedName, QualName, local_name, ns};

use super::{DEPTH_MAX, ELEMENTS_MAX, HtmlFault, HtmlFaultKind};

pub(super) struct OutlineNode {
    name: QualName,
    depth: Cell<u32>,
    integration_point: bool,
}

/// A tree sink that counts elements and depth, and remembers the first bound that was passed.
pub(super) struct DocumentOutline {
    document: Rc<OutlineNode>,
    /// One node for all comments, which need no data.
    leaf: Rc<OutlineNode>,
    elements: Cell<u32>,
    depth_max: u32,
    passed: Cell<Option<HtmlFaultKind>>,
}

impl DocumentOutline {
    pub(super) fn new(depth_max: u32) -> Self {
        let node = || {
            let name = QualName::new(None, ns!(), local_name!(""));
            Rc::new(OutlineNode { name, depth: Cell::new(0), integration_point: false })
        };
        Self { document: node(), leaf: node(), elements: Cell::new(0), depth_max, passed: Cell::new(None) }
    }

    /// The bound that was passed, after which reading should stop.
    pub(super) fn passed(&self) -> Option<HtmlFault> {
        self.passed.get().map(|kind| match kind {
            HtmlFaultKind::TooDeep => {
                HtmlFault::new(kind, format!("more than {} levels", self.depth_max.min(DEPTH_MAX)))
            }
            _ => HtmlFault::new(kind, format!("more than {ELEMENTS_MAX}")),
        })
    }

    fn set_depth(&self, child: NodeOrText<Rc<OutlineNode>>, depth: u32) {
        let NodeOrText::AppendNode(node) = child else { return };
        if Rc::ptr_eq(&node, &self.leaf) {
            return;
        }
        node.depth.set(depth);
        if depth > self.depth_max {
            self.passed.set(Some(HtmlFaultKind::TooDeep));
        }
    }
}

impl TreeSink for DocumentOutline {
    type Handle = Rc<OutlineNode>;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<OutlineNode> {
        self.document.clone()
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<OutlineNode>) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, flags: ElementFlags) -> Rc<OutlineNode> {
        self.elements.set(self.elements.get() + 1);
        if self.elements.get() > ELEMENTS_MAX {
            self.passed.set(Some(HtmlFaultKind::TooManyElements));
        }
        let integration_point = flags.mathml_annotation_xml_integration_point;
        Rc::new(OutlineNode { name, depth: Cell::new(0), integration_point })
    }

    fn create_comment(&self, _: StrTendril) -> Rc<OutlineNode> {
        self.leaf.clone()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<OutlineNode> {
        self.leaf.clone()
    }

    fn append(&self, parent: &Rc<OutlineNode>, child: NodeOrText<Rc<OutlineNode>>) {
        self.set_depth(child, parent.depth.get() + 1);
    }

    fn append_before_sibling(&self, sibling: &Rc<OutlineNode>, child: NodeOrText<Rc<OutlineNode>>) {
        self.set_depth(child, sibling.depth.get());
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<OutlineNode>,
        previous: &Rc<OutlineNode>,
        child: NodeOrText<Rc<OutlineNode>>,
    ) {
        self.set_depth(child, element.depth.get().max(previous.depth.get() + 1));
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// The contents of a template count as its children.
    fn get_template_contents(&self, target: &Rc<OutlineNode>) -> Rc<OutlineNode> {
        target.clone()
    }

    fn same_node(&self, a: &Rc<OutlineNode>, b: &Rc<OutlineNode>) -> bool {
        Rc::ptr_eq(a, b)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn add_attrs_if_missing(&self, _: &Rc<OutlineNode>, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &Rc<OutlineNode>) {}

    /// Moves children one level down at most, and never makes the stack of open elements longer.
    fn reparent_children(&self, _: &Rc<OutlineNode>, _: &Rc<OutlineNode>) {}

    fn is_mathml_annotation_xml_integration_point(&self, target: &Rc<OutlineNode>) -> bool {
        target.integration_point
    }
}
