//! Several gateways on one database.

use serde_json::Value;

use crate::{Client, Gateway, text};

/// The secret key that all nodes of a database share.
const ADMIN_KEY: &str = "an-admin-key-that-all-nodes-of-a-test-share";
const SECRET_KEY: &str = "c2hhcmVkLWJ5LWFsbC1ub2Rlcy1vZi1vbmUtdGVzdCE=";

/// The variables of a node of this database; `name` is its EHLO name.
pub fn node_env<'a>(url: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("POSTWAY_DATABASE_URL", url),
        ("POSTWAY_ADMIN_KEY", ADMIN_KEY),
        ("POSTWAY_SECRET_KEY", SECRET_KEY),
        ("POSTWAY_SMTP_EHLO_NAME", name),
    ]
}

/// Starts a node of this database.
pub async fn start_node(url: &str, name: &str) -> anyhow::Result<Gateway> {
    Gateway::start_with(&node_env(url, name)).await
}

/// The nodes as one of them lists them: address, status, and whether it is the one that was asked.
pub async fn nodes_of(gateway: &Client) -> anyhow::Result<Vec<(String, String, bool)>> {
    let list = gateway.get("/v1/nodes").await?;
    let nodes = list["data"].as_array().map_or(&[][..], Vec::as_slice);
    let read = |node: &Value| {
        let is_self = node["is_self"] == true;
        (format!("http://{}", text(node, "address")), text(node, "status").to_owned(), is_self)
    };
    Ok(nodes.iter().map(read).collect())
}
