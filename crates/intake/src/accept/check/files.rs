//! Checks the attachments of a message, given by content or by location.

use bytes::Bytes;
use postway_domain::tenant::{LargeFilePolicy, LargeFiles};
use postway_mime::{ComposeError, MailAttachment};

use crate::{
    accept::look_up::LookupResult,
    accept::parse::request::{AttachmentInput, MessageInput},
    fetch::{FileDigests, FileSource, content_type, infer_source},
    limits::IntakeLimits,
    refusal::{FieldFaults, Refusal},
};

const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// A checked attachment, and where its bytes come from.
#[derive(Debug)]
pub(crate) struct AttachmentPlan {
    /// The path of the attachment in the request: `attachments[0]`.
    pub field: String,
    pub filename: String,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub inline: bool,
    pub digests: FileDigests,
    pub source: FileSource,
    /// Whether the file is stored here and linked to. For a file that is not fetched yet, its size decides
    /// later.
    pub is_linked: bool,
}

impl AttachmentPlan {
    pub(crate) fn needs_preparation(&self) -> bool {
        self.is_linked || !matches!(self.source, FileSource::Content(_))
    }
}

/// Checks the attachments of a request. Attachments that cannot fit into a message are refused at once.
pub(super) fn files(
    request: &MessageInput<'_>,
    looked_up: &LookupResult,
    limits: &IntakeLimits,
    mut bytes_left: usize,
    warnings: &mut Vec<String>,
    errors: &mut FieldFaults,
) -> Result<Vec<AttachmentPlan>, Refusal> {
    let files = request.attachments.as_ref().map_or(&[][..], |files| &files.0);
    if files.len() > limits.attachments_max {
        let max = limits.attachments_max;
        errors.add("attachments", format!("there are {} attachments: use at most {max}", files.len()));
        return Ok(Vec::new());
    }
    let large = &looked_up.profile.settings.large_files;
    let mut plans = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let mut plan = plan(format!("attachments[{index}]"), &file.0, looked_up, errors);
        if let FileSource::Content(bytes) = &plan.source {
            let is_large = !plan.inline && large.is_large(bytes.len() as u64);
            plan.is_linked = is_large && large.policy == LargeFilePolicy::Rewrite;
            if is_large {
                refuse_large(large, &plan.field, warnings, errors);
            }
            if !plan.is_linked {
                let too_large = || Refusal::message_too_large(limits.message_bytes_max);
                bytes_left = bytes_left.checked_sub(bytes.len()).ok_or_else(too_large)?;
            }
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Applies the tenant's policy to a large file: a fault, a warning, or nothing if it will be linked.
pub(crate) fn refuse_large(
    large: &LargeFiles,
    field: &str,
    warnings: &mut Vec<String>,
    errors: &mut FieldFaults,
) {
    let message = format!("is larger than {} bytes (large_files)", large.above_bytes.unwrap_or_default());
    match large.policy {
        LargeFilePolicy::Reject => errors.add(field, message),
        LargeFilePolicy::Warn => warnings.push(format!("{field} {message}")),
        LargeFilePolicy::Rewrite => {}
    }
}

fn plan(
    field: String,
    file: &AttachmentInput<'_>,
    looked_up: &LookupResult,
    errors: &mut FieldFaults,
) -> AttachmentPlan {
    let digests = FileDigests {
        sha256: digest(&format!("{field}.sha256"), file.sha256.as_deref(), errors),
        md5: digest(&format!("{field}.content_md5"), file.content_md5.as_deref(), errors),
    };
    let source = source(&field, file, looked_up, errors);
    let mut plan = AttachmentPlan {
        filename: file.filename.as_deref().unwrap_or_default().to_owned(),
        content_type: file.content_type.as_deref().map(str::to_owned),
        content_id: file.content_id.as_deref().map(str::to_owned),
        inline: file.inline.unwrap_or(false),
        digests,
        source,
        is_linked: false,
        field,
    };
    if file.filename.is_none() {
        errors.add(format!("{}.filename", plan.field), "is missing: name the file");
        plan.filename = "file".to_owned();
    }
    let mut probe = MailAttachment {
        filename: plan.filename.clone(),
        content_type: plan.content_type.clone().unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned()),
        content: Vec::new(),
        content_id: plan.content_id.clone(),
        inline: plan.inline,
    };
    // Each faulty field gets a valid value after its fault is added, so that the next fault shows. Three
    // fields can be faulty.
    let mut is_sound = true;
    for _ in 0..3 {
        let Err(error) = probe.check() else { break };
        is_sound = false;
        let (name, message) = (mend(&mut probe, &error), error.to_string());
        errors.add(format!("{}.{name}", plan.field), message);
    }
    if let FileSource::Content(bytes) = &plan.source
        && is_sound
    {
        if let Err((name, message)) = plan.digests.check(bytes) {
            errors.add(format!("{}.{name}", plan.field), message);
        }
        match content_type(&plan.filename, plan.content_type.as_deref(), bytes) {
            Ok(kind) => plan.content_type = Some(kind),
            Err(refused) => errors.add(format!("{}.{}", plan.field, refused.field), refused.message),
        }
    }
    plan
}

fn mend(attachment: &mut MailAttachment, error: &ComposeError) -> &'static str {
    match error {
        ComposeError::ContentType { .. } => {
            attachment.content_type = DEFAULT_CONTENT_TYPE.to_owned();
            "content_type"
        }
        ComposeError::ContentId { .. } => {
            attachment.content_id = None;
            "content_id"
        }
        ComposeError::Filename { .. }
        | ComposeError::NoBody
        | ComposeError::Nul { .. }
        | ComposeError::Header(_)
        | ComposeError::Id(_) => {
            attachment.filename = "file".to_owned();
            "filename"
        }
    }
}

/// Reads where the bytes of a file come from. Exactly one field must say it.
fn source(
    field: &str,
    file: &AttachmentInput<'_>,
    looked_up: &LookupResult,
    errors: &mut FieldFaults,
) -> FileSource {
    let nothing = FileSource::Content(Bytes::new());
    let given = [
        ("content", &file.content),
        ("url", &file.url),
        ("endpoint", &file.endpoint),
        ("path", &file.path),
        ("storage_path", &file.storage_path),
    ];
    let mut given = given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
    let Some((name, text)) = given.next() else {
        errors.add(
            format!("{field}.content"),
            "is missing: give the file's content in base64, or its url, endpoint or path",
        );
        return nothing;
    };
    if let Some((second, _)) = given.next() {
        errors.add(format!("{field}.{second}"), format!("a file has one source: {name} is given as well"));
        return nothing;
    }
    let mode = match name {
        "storage_path" => file.fetch_mode.as_deref(),
        named => Some(named),
    };
    let source = infer_source(mode, text);
    let Some(source) = errors.take(&format!("{field}.{name}"), source) else { return nothing };
    if matches!(source, FileSource::Endpoint(_)) && looked_up.profile.attachment_endpoint().is_none() {
        errors.add(
            format!("{field}.{name}"),
            "the tenant has no attachment_endpoint: set it with PATCH /v1/tenants, or give content, url or path",
        );
    }
    source
}

/// The finished attachment, from its plan and its bytes.
pub(crate) fn attachment(plan: AttachmentPlan, content_type: String, bytes: Bytes) -> MailAttachment {
    let AttachmentPlan { filename, content_id, inline, .. } = plan;
    MailAttachment { filename, content_type, content: bytes.into(), content_id, inline }
}

/// The finished attachment, if its bytes came with the request.
pub(crate) fn attachment_here(mut plan: AttachmentPlan) -> Option<MailAttachment> {
    let content_type = plan.content_type.take().unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned());
    match std::mem::replace(&mut plan.source, FileSource::Content(Bytes::new())) {
        FileSource::Content(bytes) => Some(attachment(plan, content_type, bytes)),
        FileSource::Url(_) | FileSource::Endpoint(_) | FileSource::Path(_) => None,
    }
}

/// A digest of `N` bytes, in hexadecimal.
fn digest<const N: usize>(field: &str, text: Option<&str>, errors: &mut FieldFaults) -> Option<[u8; N]> {
    errors.take(field, read_digest(text?))
}

fn read_digest<const N: usize>(text: &str) -> Result<[u8; N], String> {
    let wrong = || format!("must be {} hexadecimal digits", 2 * N);
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut digest = [0; N];
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_twice_as_many_hexadecimal_digits() {
        assert_eq!(read_digest(&"0f".repeat(32)), Ok([15; 32]));
        assert_eq!(read_digest(&"0F".repeat(16)), Ok([15; 16]));
        for bad in ["", "0f", &"xy".repeat(32), &"+f".repeat(32), &"é".repeat(32)] {
            assert!(read_digest::<32>(bad).is_err(), "{bad}");
        }
    }
}
