//! What answers where no route is: the door whose path it was meant to be, or our own surface.
//!
//! A program that joins addresses as texts asks for `/compat/resendemails`: that is the door's call, with the slash forgotten
//! between them. And with a door at `/`, whatever is not ours is the door's to refuse: its users read errors in its shape only,
//! and some take what they cannot read for success.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};

use super::{CompatConfig, DoorName, error_style::LooseDoor, of, routes::DoorRoutes};
use crate::{middleware, state::Shared};

/// What our own surface begins its paths with.
const OURS: [&str; 9] =
    ["v1", "health", "metrics", "docs", "openapi.json", "assets", "files", "compat", "unsubscribe"];

/// The doors, for requests that no route took.
#[derive(Clone)]
pub(crate) struct Unmatched {
    nested: Arc<[(DoorName, LooseDoor<Shared>)]>,
    root: Option<Arc<RootDoor>>,
}

struct RootDoor {
    paths: Vec<&'static str>,
    door: LooseDoor<Shared>,
}

impl Unmatched {
    pub(crate) fn new(config: &CompatConfig) -> Self {
        let loose = |door: DoorName| {
            let (DoorRoutes { router, listed }, dress) = of(door);
            let paths = listed.into_iter().map(|(_, path)| path).collect();
            RootDoor { paths, door: LooseDoor::new(router, dress) }
        };
        Self {
            nested: config.doors.iter().map(|&door| (door, loose(door).door)).collect(),
            root: config.root.map(|door| Arc::new(loose(door))),
        }
    }

    /// Answers what no route took.
    pub(crate) async fn answer(self, State(app): State<Shared>, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        for (name, door) in self.nested.iter() {
            let behind = path.strip_prefix("/compat/").and_then(|rest| rest.strip_prefix(name.as_str()));
            if let Some(behind) = behind {
                return door.answer(app, behind, request).await;
            }
        }
        match self.root {
            Some(root) if root.has(&path) || !is_ours(&path) => root.door.answer(app, &path, request).await,
            _ => middleware::no_such_path().await.into_response(),
        }
    }
}

impl RootDoor {
    /// Whether the door has this path, slashes that say nothing aside.
    fn has(&self, path: &str) -> bool {
        let asked = || path.split('/').filter(|part| !part.is_empty());
        self.paths.iter().any(|route| {
            let parts = || route.split('/').filter(|part| !part.is_empty());
            let fits = |(part, given): (&str, &str)| part.starts_with('{') || part == given;
            parts().count() == asked().count() && parts().zip(asked()).all(fits)
        })
    }
}

fn is_ours(path: &str) -> bool {
    path.split('/').find(|part| !part.is_empty()).is_none_or(|first| OURS.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_our_own_document_stays_ours() {
        let (_, document) = crate::openapi::routes().split_for_parts();
        assert!(document.paths.paths.len() > 50);
        for path in document.paths.paths.keys() {
            assert!(is_ours(path), "{path}: name its first part in OURS");
        }
        assert!(is_ours("/") && is_ours("//") && is_ours("/assets/page.css"));
        assert!(!is_ours("/emails") && !is_ours("/v10") && !is_ours("/healthy"));
    }

    #[test]
    fn a_door_at_the_root_knows_its_paths_by_their_parts() {
        let unmatched =
            Unmatched::new(&CompatConfig { root: Some(DoorName::Reference004), ..Default::default() });
        let root = unmatched.root.unwrap();
        assert!(root.has("/v1/email/send/") && root.has("//v1/emails/abc"));
        assert!(!root.has("/v1/messages") && !root.has("/"));
    }
}
