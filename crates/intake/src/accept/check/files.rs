//! What goes with a message: files by content, or by where they are.

use bytes::Bytes;
use postway_domain::tenant::{LargeFilePolicy, LargeFiles};
use postway_mime::{Attachment, ComposeError};

use crate::{
    accept::look_up::Surroundings,
    accept::parse::request::{AttachmentRequest, MessageRequest},
    fetch::{Digests, Source, content_type, infer_source},
    limits::Limits,
    refusal::{Findings, Refusal},
};

const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// One file, named and checked, and where its bytes are.
#[derive(Debug)]
pub(crate) struct FilePlan {
    /// Its place in the request: `attachments[0]`.
    pub field: String,
    pub filename: String,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub inline: bool,
    pub digests: Digests,
    pub source: Source,
    /// Whether it is kept elsewhere and linked to. Of a file that is not here yet, its size will tell.
    pub is_linked: bool,
}

impl FilePlan {
    pub(crate) fn needs_preparation(&self) -> bool {
        self.is_linked || !matches!(self.source, Source::Content(_))
    }
}

/// Checks the files of a request. More of them than a message can hold are refused at once.
pub(super) fn files(
    request: &MessageRequest<'_>,
    around: &Surroundings,
    limits: &Limits,
    mut room: usize,
    warnings: &mut Vec<String>,
    findings: &mut Findings,
) -> Result<Vec<FilePlan>, Refusal> {
    let files = request.attachments.as_ref().map_or(&[][..], |files| &files.0);
    if files.len() > limits.attachments_max {
        let max = limits.attachments_max;
        findings.add("attachments", format!("there are {} attachments: use at most {max}", files.len()));
        return Ok(Vec::new());
    }
    let large = &around.house.settings.large_files;
    let mut plans = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let mut plan = plan(format!("attachments[{index}]"), &file.0, around, findings);
        if let Source::Content(bytes) = &plan.source {
            let is_large = !plan.inline && large.is_large(bytes.len() as u64);
            plan.is_linked = is_large && large.policy == LargeFilePolicy::Rewrite;
            if is_large {
                refuse_large(large, &plan.field, warnings, findings);
            }
            if !plan.is_linked {
                let too_large = || Refusal::message_too_large(limits.message_bytes_max);
                room = room.checked_sub(bytes.len()).ok_or_else(too_large)?;
            }
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Says of a large file what its tenant wants to be said.
pub(crate) fn refuse_large(
    large: &LargeFiles,
    field: &str,
    warnings: &mut Vec<String>,
    findings: &mut Findings,
) {
    let message = format!("is larger than {} bytes (large_files)", large.above_bytes.unwrap_or_default());
    match large.policy {
        LargeFilePolicy::Reject => findings.add(field, message),
        LargeFilePolicy::Warn => warnings.push(format!("{field} {message}")),
        LargeFilePolicy::Rewrite => {}
    }
}

fn plan(
    field: String,
    file: &AttachmentRequest<'_>,
    around: &Surroundings,
    findings: &mut Findings,
) -> FilePlan {
    let digests = Digests {
        sha256: digest(&format!("{field}.sha256"), file.sha256.as_deref(), findings),
        md5: digest(&format!("{field}.content_md5"), file.content_md5.as_deref(), findings),
    };
    let source = source(&field, file, around, findings);
    let mut plan = FilePlan {
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
        findings.add(format!("{}.filename", plan.field), "is missing: name the file");
        plan.filename = "file".to_owned();
    }
    let mut probe = Attachment {
        filename: plan.filename.clone(),
        content_type: plan.content_type.clone().unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned()),
        content: Vec::new(),
        content_id: plan.content_id.clone(),
        inline: plan.inline,
    };
    // Each fault is mended after it is noted, so that the next one shows. There are three fields to mend.
    let mut is_sound = true;
    for _ in 0..3 {
        let Err(error) = probe.check() else { break };
        is_sound = false;
        let (name, message) = (mend(&mut probe, &error), error.to_string());
        findings.add(format!("{}.{name}", plan.field), message);
    }
    if let Source::Content(bytes) = &plan.source
        && is_sound
    {
        if let Err((name, message)) = plan.digests.check(bytes) {
            findings.add(format!("{}.{name}", plan.field), message);
        }
        match content_type(&plan.filename, plan.content_type.as_deref(), bytes) {
            Ok(kind) => plan.content_type = Some(kind),
            Err(refused) => findings.add(format!("{}.{}", plan.field, refused.field), refused.message),
        }
    }
    plan
}

fn mend(attachment: &mut Attachment, error: &ComposeError) -> &'static str {
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

/// Where the bytes of a file are. Exactly one of the fields says so.
fn source(
    field: &str,
    file: &AttachmentRequest<'_>,
    around: &Surroundings,
    findings: &mut Findings,
) -> Source {
    let nothing = Source::Content(Bytes::new());
    let given = [
        ("content", &file.content),
        ("url", &file.url),
        ("endpoint", &file.endpoint),
        ("path", &file.path),
        ("storage_path", &file.storage_path),
    ];
    let mut given = given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
    let Some((name, text)) = given.next() else {
        findings.add(
            format!("{field}.content"),
            "is missing: give the file's content in base64, or its url, endpoint or path",
        );
        return nothing;
    };
    if let Some((second, _)) = given.next() {
        findings.add(format!("{field}.{second}"), format!("a file has one source: {name} is given as well"));
        return nothing;
    }
    let mode = match name {
        "storage_path" => file.fetch_mode.as_deref(),
        named => Some(named),
    };
    let source = infer_source(mode, text);
    let Some(source) = findings.take(&format!("{field}.{name}"), source) else { return nothing };
    if matches!(source, Source::Endpoint(_)) && around.house.attachment_endpoint().is_none() {
        findings.add(
            format!("{field}.{name}"),
            "the tenant has no attachment_endpoint: set it with PATCH /v1/tenants, or give content, url or path",
        );
    }
    source
}

/// The finished attachment, once its bytes are there.
pub(crate) fn attachment(plan: FilePlan, content_type: String, bytes: Bytes) -> Attachment {
    let FilePlan { filename, content_id, inline, .. } = plan;
    Attachment { filename, content_type, content: bytes.into(), content_id, inline }
}

/// The same, where the bytes came with the request.
pub(crate) fn attachment_here(mut plan: FilePlan) -> Option<Attachment> {
    let content_type = plan.content_type.take().unwrap_or_else(|| DEFAULT_CONTENT_TYPE.to_owned());
    match std::mem::replace(&mut plan.source, Source::Content(Bytes::new())) {
        Source::Content(bytes) => Some(attachment(plan, content_type, bytes)),
        Source::Url(_) | Source::Endpoint(_) | Source::Path(_) => None,
    }
}

/// A digest of `N` bytes, in hexadecimal.
fn digest<const N: usize>(field: &str, text: Option<&str>, findings: &mut Findings) -> Option<[u8; N]> {
    findings.take(field, read_digest(text?))
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
