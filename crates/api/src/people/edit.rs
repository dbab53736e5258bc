//! Users from request bodies. Every faulty field is reported, including unknown ones.

use std::collections::BTreeSet;

use postway_domain::{EmailAddress, TenantId, UserName, UserRole, UserTenants};
use serde_json::{Map, Value};

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

const DISPLAY_NAME_CHARS_MAX: usize = 200;

/// The fields that a body sets; absent fields are `None`.
#[derive(Debug, Default)]
pub(super) struct UserEdit {
    pub(super) name: Option<UserName>,
    pub(super) display_name: Option<String>,
    /// `Some(None)` removes it.
    pub(super) email: Option<Option<String>>,
    pub(super) role: Option<UserRole>,
    pub(super) tenants: Option<UserTenants>,
    pub(super) read_content: Option<bool>,
    pub(super) disabled: Option<bool>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

impl UserEdit {
    /// Whether it says what the user may do, or whether it may sign in.
    pub(super) fn changes_rights(&self) -> bool {
        self.role.is_some()
            || self.tenants.is_some()
            || self.read_content.is_some()
            || self.disabled.is_some()
    }
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>, is_new: bool) -> Result<UserEdit, Vec<FieldError>> {
    let names = body.keys().take(8).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["issuer", "subject", "has_password", "recovery_codes", "passkeys", "disabled_at"] {
        fields.take(shown);
    }
    for shown in ["created_at", "updated_at"] {
        fields.take(shown);
    }
    let name = match is_new {
        true => fields.parsed::<UserName>("name"),
        false => fields.take("name").and(None),
    };
    if is_new && name.is_none() {
        fields.refuse("name", "is needed: what the user signs in with");
    }
    let form = "must be a list of tenants, or null for all of them";
    let tenants = match fields.has("tenants") {
        false => None,
        true => Some(match fields.read::<BTreeSet<TenantId>>("tenants", form) {
            Some(named) => UserTenants::Named(named),
            None => UserTenants::All,
        }),
    };
    if is_new && tenants.is_none() {
        fields.refuse("tenants", form);
    }
    if matches!(&tenants, Some(UserTenants::Named(named)) if named.is_empty() || named.len() > UserTenants::NAMED_MAX)
    {
        fields.refuse("tenants", format!("must name 1 to {} tenants", UserTenants::NAMED_MAX));
    }
    let role = fields.parsed::<UserRole>("role");
    if is_new && role.is_none() {
        fields.refuse("role", "must be viewer, operator, manager or admin");
    }
    let flag = "must be true or false";
    let given = UserEdit {
        name,
        display_name: fields.text("display_name", DISPLAY_NAME_CHARS_MAX).map(|name| name.trim().to_owned()),
        email: fields.has("email").then(|| {
            fields.parsed::<EmailAddress>("email").map(|address| address.to_string().to_lowercase())
        }),
        role,
        tenants,
        read_content: fields.read("read_content", flag),
        disabled: fields.read("disabled", flag),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    fields.finish("is not a field of a user");
    wrong.dedup_by(|a, b| a.field == b.field);
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({}), &["name", "tenants", "role"][..]),
            (json!({"name": "a b", "tenants": [], "role": "god"}), &["name", "tenants", "role"]),
            (json!({"name": "ada", "tenants": ["a b"], "role": "viewer"}), &["tenants"]),
            (json!({"name": "ada", "tenants": null, "role": "viewer", "password": "x"}), &["password"]),
            (
                json!({"name": "ada", "tenants": null, "role": "viewer", "email": "x", "disabled": 1}),
                &["email", "disabled"],
            ),
        ] {
            let wrong = read(body.as_object().unwrap().clone(), true).unwrap_err();
            assert_eq!(wrong.into_iter().map(|wrong| wrong.field).collect::<Vec<_>>(), fields, "{body}");
        }
        // A list that cannot be read must not pass for all tenants.
        let wrong = read(json!({"tenants": "all"}).as_object().unwrap().clone(), false);
        assert!(wrong.is_err());
        let all = read(json!({"tenants": null}).as_object().unwrap().clone(), false).unwrap();
        assert_eq!(all.tenants, Some(UserTenants::All));
        assert!(all.changes_rights());
    }
}
