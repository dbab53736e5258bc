//! The fallback for requests without a route: the compatibility API whose path it was meant to be, or our own
//! 404.
//!
//! A program that joins URLs as texts may call `/compat/resendemails`: that is the API's call with a slash
//! missing. And if an API is at `/`, paths that are not ours are that API's to refuse: its users read errors
//! in its format only, and some take what they cannot read for success.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};

use super::{CompatApi, CompatConfig, error_style::LenientRouter, routes::CompatRoutes, routes_of};
use crate::{http::fallback, state::SharedState};

/// The prefixes of our own paths.
const OURS: [&str; 10] =
    ["v1", "health", "metrics", "docs", "openapi.json", "assets", "files", "compat", "unsubscribe", "hooks"];

/// The compatibility APIs, for requests that no route matched.
#[derive(Clone)]
pub(crate) struct UnmatchedRoutes {
    nested: Arc<[(CompatApi, LenientRouter<SharedState>)]>,
    root: Option<Arc<RootCompatApi>>,
}

struct RootCompatApi {
    paths: Vec<&'static str>,
    router: LenientRouter<SharedState>,
}

impl UnmatchedRoutes {
    pub(crate) fn new(config: &CompatConfig) -> Self {
        let loose = |api: CompatApi| {
            let (CompatRoutes { router, listed }, style) = routes_of(api);
            let paths = listed.into_iter().map(|(_, path)| path).collect();
            RootCompatApi { paths, router: LenientRouter::new(router, style) }
        };
        Self {
            nested: config.doors.iter().map(|&api| (api, loose(api).router)).collect(),
            root: config.root.map(|api| Arc::new(loose(api))),
        }
    }

    /// Answers a request that no route matched.
    pub(crate) async fn answer(self, State(app): State<SharedState>, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        for (api, router) in self.nested.iter() {
            let after_prefix = path.strip_prefix("/compat/");
            let after_name = |rest| api.names().find_map(|name| str::strip_prefix(rest, name));
            if let Some(behind) = after_prefix.and_then(after_name) {
                return router.answer(app, behind, request).await;
            }
        }
        match self.root {
            Some(root) if root.has(&path) || !is_ours(&path) => root.router.answer(app, &path, request).await,
            _ => fallback::no_such_path().await.into_response(),
        }
    }
}

impl RootCompatApi {
    /// Whether the API has this path, ignoring empty segments.
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
            UnmatchedRoutes::new(&CompatConfig { root: Some(CompatApi::Pipeline), ..Default::default() });
        let root = unmatched.root.unwrap();
        assert!(root.has("/v1/email/send/") && root.has("//v1/emails/abc"));
        assert!(!root.has("/v1/messages") && !root.has("/"));
    }
}
