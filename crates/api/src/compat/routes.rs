//! The routes of a door, with a list of them.
//!
//! A router cannot say what it has. A door's routes are put together here, so that whoever must visit every one of them, as the
//! test of tenants' isolation does, cannot miss one that was added later.

use axum::{
    Router,
    handler::Handler,
    http::Method,
    routing::{MethodFilter, MethodRouter, on},
};

use super::api_name::DoorName;
use crate::state::Shared;

/// One route of a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompatRoute {
    /// The door.
    pub door: DoorName,
    /// The method.
    pub method: Method,
    /// The path behind the door's prefix, with `{id}` and the like in it.
    pub path: &'static str,
}

/// The routes of a door while they are put together.
#[derive(Default)]
pub(super) struct DoorRoutes {
    pub(super) router: Router<Shared>,
    pub(super) listed: Vec<(Method, &'static str)>,
}

macro_rules! by_method {
    ($($name:ident $method:ident)*) => {
        $(
            #[doc = concat!("Adds a route for ", stringify!($method), ".")]
            pub(super) fn $name<H, T>(self, path: &'static str, handler: H) -> Self
            where
                H: Handler<T, Shared>,
                T: 'static,
            {
                self.with(Method::$method, path, on(MethodFilter::$method, handler))
            }
        )*
    };
}

impl DoorRoutes {
    by_method! { get GET post POST put PUT patch PATCH delete DELETE }

    fn with(mut self, method: Method, path: &'static str, handler: MethodRouter<Shared>) -> Self {
        self.router = self.router.route(path, handler);
        self.listed.push((method, path));
        self
    }

    /// Puts something around the routes.
    pub(super) fn around(mut self, wrap: impl FnOnce(Router<Shared>) -> Router<Shared>) -> Self {
        self.router = wrap(self.router);
        self
    }
}
