//! `[oidc]`: the provider at which people sign in to the page.

use std::collections::BTreeMap;

use postway_domain::{TenantId, UserRole};

use super::keys::ConfigSecret;
use super::layers::ConfigLayers;

/// Where the provider sends people back to, behind the address of this gateway.
const CALLBACK: &str = "/v1/session/oidc/callback";

/// The provider, and what its claims mean here.
#[derive(Clone, Debug)]
pub struct OidcSection {
    /// The issuer: exactly what the provider calls itself.
    pub issuer: String,
    /// The client's id.
    pub client_id: String,
    /// The client's secret; none: a public client.
    pub client_secret: Option<ConfigSecret>,
    /// What people call the provider.
    pub name: String,
    /// What is asked for besides `openid`.
    pub scopes: String,
    /// Where the provider sends people back to.
    pub redirect_url: String,
    /// The claim that has the role.
    pub role_claim: Option<String>,
    /// The role for each value of that claim; empty: the values are the roles.
    pub roles: BTreeMap<String, UserRole>,
    /// The role of who has none by the claim.
    pub default_role: Option<UserRole>,
    /// The claim that has the tenants.
    pub tenants_claim: Option<String>,
    /// The tenants where no claim is named.
    pub tenants: Vec<String>,
    /// Whether people who are not known here yet become users.
    pub just_in_time: bool,
}

impl OidcSection {
    /// The section; inner `None` where no issuer is set.
    pub(super) fn read(layers: &mut ConfigLayers, public_url: Option<&str>) -> Option<Option<Self>> {
        let word = |text: &str| match text.trim() {
            "" => Err("is empty".to_owned()),
            text => Ok(text.to_owned()),
        };
        let issuer = layers.take_optional("oidc.issuer", web_address)?;
        let client_id = layers.take_optional("oidc.client_id", word)?;
        let client_secret =
            layers.take_optional("oidc.client_secret", |text| word(text).map(ConfigSecret::new))?;
        let name = layers.take("oidc.name", "your provider".to_owned(), "your provider", word)?;
        let scopes = layers.take("oidc.scopes", "profile email".to_owned(), "profile email", word)?;
        let redirect_url = layers.take_optional("oidc.redirect_url", |text| {
            let address = web_address(text)?;
            match address.ends_with(CALLBACK) {
                true => Ok(address),
                false => Err(format!("must end with {CALLBACK}")),
            }
        })?;
        let role_claim = layers.take_optional("oidc.role_claim", word)?;
        let roles = layers.take("oidc.roles", BTreeMap::new(), "", roles)?;
        let default_role = layers.take_optional("oidc.default_role", role)?;
        let tenants_claim = layers.take_optional("oidc.tenants_claim", word)?;
        let tenants = layers.take("oidc.tenants", vec!["default".to_owned()], "default", tenants)?;
        let just_in_time = layers.take("oidc.just_in_time", false, "false", |text| {
            text.parse().map_err(|_| "must be true or false".to_owned())
        })?;
        let Some(issuer) = issuer else { return Some(None) };
        let Some(client_id) = client_id else {
            layers.refuse(
                "oidc.client_id",
                "is needed with oidc.issuer: the provider gives it to you".to_owned(),
            );
            return None;
        };
        let redirect_url = redirect_url.or_else(|| public_url.map(|url| format!("{url}{CALLBACK}")));
        let Some(redirect_url) = redirect_url else {
            layers.refuse(
                "oidc.redirect_url",
                format!("is needed with oidc.issuer, or public_url: the page's address and {CALLBACK}"),
            );
            return None;
        };
        if just_in_time && role_claim.is_none() && default_role.is_none() {
            layers.refuse(
                "oidc.just_in_time",
                "needs oidc.role_claim or oidc.default_role: nobody would have a role".to_owned(),
            );
            return None;
        }
        Some(Some(Self {
            issuer,
            client_id,
            client_secret,
            name,
            scopes,
            redirect_url,
            role_claim,
            roles,
            default_role,
            tenants_claim,
            tenants,
            just_in_time,
        }))
    }
}

fn web_address(text: &str) -> Result<String, String> {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    match is_web && !text.contains(char::is_whitespace) {
        true => Ok(text.to_owned()),
        false => Err("must be an http(s) address, such as https://id.example.com".to_owned()),
    }
}

fn role(text: &str) -> Result<UserRole, String> {
    text.trim().parse().map_err(|error: postway_domain::id::InvalidIdentifier| error.to_string())
}

/// `mail-admins=admin,ops=operator`.
fn roles(text: &str) -> Result<BTreeMap<String, UserRole>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (value, word) = pair
                .rsplit_once('=')
                .ok_or_else(|| format!("`{pair}` is no pair such as mail-admins=admin"))?;
            Ok((value.trim().to_owned(), role(word)?))
        })
        .collect()
}

fn tenants(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| match name == "*" || name.parse::<TenantId>().is_ok() {
            true => Ok(name.to_owned()),
            false => Err(format!("`{name}` is neither the id of a tenant nor `*`, which means all")),
        })
        .collect()
}
