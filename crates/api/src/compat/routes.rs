//! The routes of a compatibility API, with a list of them.
//!
//! A router cannot list its routes. They are collected here, so that the test of tenants' isolation visits
//! every one of them, including those added later.

use axum::{
    Router,
    handler::Handler,
    http::Method,
    routing::{MethodFilter, MethodRouter, on},
};

use super::api_name::CompatApi;
use crate::state::SharedState;

/// One route of a compatibility API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompatRoute {
    /// The API.
    pub door: CompatApi,
    /// The method.
    pub method: Method,
    /// The path below the API's prefix, with parameters such as `{id}`.
    pub path: &'static str,
}

/// The routes of an API while they are collected.
#[derive(Default)]
pub(super) struct CompatRoutes {
    pub(super) router: Router<SharedState>,
    pub(super) listed: Vec<(Method, &'static str)>,
}

macro_rules! by_method {
    ($($name:ident $method:ident)*) => {
        $(
            #[doc = concat!("Adds a route for ", stringify!($method), ".")]
            pub(super) fn $name<H, T>(self, path: &'static str, handler: H) -> Self
            where
                H: Handler<T, SharedState>,
                T: 'static,
            {
                self.with(Method::$method, path, on(MethodFilter::$method, handler))
            }
        )*
    };
}

impl CompatRoutes {
    by_method! { get GET post POST put PUT patch PATCH delete DELETE }

    fn with(mut self, method: Method, path: &'static str, handler: MethodRouter<SharedState>) -> Self {
        self.router = self.router.route(path, handler);
        self.listed.push((method, path));
        self
    }

    /// Wraps the routes in a layer.
    pub(super) fn around(mut self, wrap: impl FnOnce(Router<SharedState>) -> Router<SharedState>) -> Self {
        self.router = wrap(self.router);
        self
    }
}
