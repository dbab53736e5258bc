//! `GET /v1/messages/{id}/raw`: the complete mail.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Response},
};
use postway_domain::MessageStatus;
use postway_store::record::MessageSummary;

use crate::{
    auth::ContentReader,
    http::{body::OCTETS, body_budget::AlreadyCounted, error::ApiError},
    message::{MessagePathId, find},
    state::SharedState,
};

/// Get the complete mail
///
/// The RFC 5322 bytes as they are sent. Bcc is never among the headers. 404 while the mail is not composed
/// yet, 403 for a sensitive message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/raw",
    operation_id = "getRawMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The mail", body = String, content_type = "message/rfc822"))
)]
pub(crate) async fn raw(
    State(app): State<SharedState>,
    caller: ContentReader,
    MessagePathId(id): MessagePathId,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let message = find(&app, &caller.tenant, &id).await?.summary;
    refuse_sensitive(&message)?;
    let Some(body) = app.store.raw(&caller.tenant, message.uid).await? else {
        return Err(absent(&message));
    };
    let bytes = app.load(&caller.tenant, body).await?;
    let headers = headers(kind_for(&asked, "message/rfc822"), &format!("{}.eml", message.uid));
    Ok((AlreadyCounted, headers, bytes).into_response())
}

/// Refuses a sensitive message: its content is for the recipients only.
pub(crate) fn refuse_sensitive(message: &MessageSummary) -> Result<(), ApiError> {
    match message.sensitive {
        true => Err(ApiError::sensitive(format!(
            "message `{}` is marked sensitive: its content cannot be read here, and is removed once it is sent",
            message.uid
        ))),
        false => Ok(()),
    }
}

/// Headers for a stranger's content: a browser must save it, never show it as a page of ours.
pub(crate) fn headers(kind: &'static str, filename: &str) -> [(HeaderName, String); 3] {
    [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{filename}\"")),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ]
}

/// The media type to answer with: plain octets if the client accepts those and not the content's own type.
pub(crate) fn kind_for(asked: &HeaderMap, own: &'static str) -> &'static str {
    let accepted: Vec<&str> = asked
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .collect();
    let takes = |kind: &str| accepted.iter().any(|range| range.eq_ignore_ascii_case(kind));
    let takes_own = accepted.iter().any(|range| {
        let family = range.strip_suffix("/*").is_some_and(|family| own.split('/').next() == Some(family));
        *range == "*/*" || range.eq_ignore_ascii_case(own) || family
    });
    if takes(OCTETS) && !takes_own { OCTETS } else { own }
}

/// Why there is no mail.
pub(crate) fn absent(message: &MessageSummary) -> ApiError {
    let uid = message.uid;
    ApiError::not_found(match message.state.status() {
        MessageStatus::Accepted | MessageStatus::Validating | MessageStatus::Scheduled => {
            format!("the mail of message `{uid}` is not composed yet: what it needs is still being fetched")
        }
        MessageStatus::Invalid => format!("message `{uid}` was refused, so its mail was never composed"),
        _ => format!("the mail of message `{uid}` is no longer kept"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_octets_are_for_those_who_ask_for_nothing_else() {
        let mail = "message/rfc822";
        let kind = |accept: &[&str]| {
            let values = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            kind_for(&values.collect(), mail)
        };
        assert_eq!(kind(&["application/octet-stream"]), OCTETS);
        assert_eq!(kind(&["application/json", "Application/Octet-Stream;q=0.5"]), OCTETS);
        for accept in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["application/octet-stream, message/rfc822"],
            &["application/octet-stream", "message/*;q=0.1"],
            &["application/octet-stream, */*"],
        ] {
            assert_eq!(kind(accept), mail, "{accept:?}");
        }
    }
}
