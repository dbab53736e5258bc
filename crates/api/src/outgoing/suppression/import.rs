//! `POST /v1/suppressions/import`: many addresses from a file, as CSV or JSON lines. A faulty line is
//! reported by its number and stops no other.

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, header},
};
use postway_domain::{TenantId, Time};
use postway_intake::{JsonBounds, JsonReadError, read_object};
use postway_store::record::SuppressionRecord;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{add, csv, read};
use crate::{
    auth::Manager,
    http::{body, error::ApiError, query::QueryParameters, request_id::RequestId},
    state::SharedState,
};

/// The largest file.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest line of JSON, and the most values in it.
const LINE_BYTES_MAX: usize = csv::RECORD_BYTES_MAX;
const LINE_VALUES_MAX: usize = 100;
/// Addresses stored together.
const TOGETHER: usize = 1_000;
/// The most faulty lines that are reported individually.
const ERRORS_MAX: usize = 1_000;
/// The default columns of a file without a header line.
const COLUMNS: [&str; 4] = ["address", "reason", "note", "expires_at"];

/// The result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ImportResult {
    /// How many addresses are suppressed from now on.
    imported: usize,
    /// How many lines were skipped.
    rejected: usize,
    /// The first 1,000 skipped lines.
    errors: Vec<WrongImportLine>,
}

/// A skipped line.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WrongLine)]
pub(crate) struct WrongImportLine {
    /// The line number, from 1.
    line: usize,
    /// Why it was skipped.
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImportFormat {
    Csv,
    Lines,
}

type Entry = (usize, Result<SuppressionRecord, String>);

/// Import suppressed addresses
///
/// A file of up to 16 MiB: CSV (`text/csv`) with the columns of an export, named in the first line or else
/// `address,reason,note,expires_at`, or JSON lines (`application/x-ndjson`) with an object or an address
/// each. A line has at most 64 KiB, and 32 columns or 100 values. A faulty line is skipped, and the answer
/// lists it by its number. `application/octet-stream` is read as CSV, unless `format` says otherwise.
#[utoipa::path(
    post,
    path = "/v1/suppressions/import",
    operation_id = "importSuppressions",
    tag = "suppressions",
    params(("format" = Option<String>, Query, description = "`csv` or `jsonl`, whatever the content type says")),
    request_body(
        content((String = "text/csv"), (String = "application/x-ndjson"), (Vec<u8> = "application/octet-stream")),
        description = "The file",
    ),
    responses((status = 200, description = "The message with its parts", body = ImportResult))
)]
pub(crate) async fn import(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<ImportResult>, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let form = query.parse("format", |text| match text {
        "csv" => Ok(ImportFormat::Csv),
        "jsonl" => Ok(ImportFormat::Lines),
        _ => Err("must be csv or jsonl"),
    });
    query.finish()?;
    let form = match form {
        Some(form) => form,
        None => form_of(&parts.headers)?,
    };
    let bytes = body::read(&parts, body, BYTES_MAX).await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ApiError::malformed("the file is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    let entries: Box<dyn Iterator<Item = Entry> + Send> = match form {
        ImportFormat::Csv => Box::new(from_csv(text, &tenant, now)),
        ImportFormat::Lines => Box::new(from_lines(text, &tenant, now)),
    };
    let mut result = ImportResult::default();
    let mut ready = Vec::new();
    for (line, entry) in entries {
        match entry {
            Ok(suppression) => ready.push(suppression),
            Err(message) => {
                result.rejected += 1;
                if result.errors.len() < ERRORS_MAX {
                    result.errors.push(WrongImportLine { line, message });
                }
            }
        }
        if ready.len() == TOGETHER {
            result.imported += ready.len();
            add(&app, &caller, std::mem::take(&mut ready), "suppression.import", &request_id).await?;
        }
    }
    result.imported += ready.len();
    add(&app, &caller, ready, "suppression.import", &request_id).await?;
    tracing::info!(%tenant, imported = result.imported, rejected = result.rejected, "suppressions imported");
    Ok(Json(result))
}

fn form_of(headers: &HeaderMap) -> Result<ImportFormat, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| body::essence(value.as_bytes()));
    match kind {
        kind if kind.eq_ignore_ascii_case(b"text/csv") => Ok(ImportFormat::Csv),
        // Generated clients know no other type for a file.
        kind if kind.eq_ignore_ascii_case(body::OCTETS.as_bytes()) => Ok(ImportFormat::Csv),
        kind if body::is_json_lines(kind) => Ok(ImportFormat::Lines),
        _ => Err(ApiError::media_type(
            "say what the file is: Content-Type text/csv or application/x-ndjson, or ?format=csv or jsonl",
        )),
    }
}

fn from_csv(text: &str, tenant: &TenantId, now: Time) -> impl Iterator<Item = Entry> {
    let mut records = csv::records(text).peekable();
    let is_head = |record: &csv::CsvRecord| {
        record
            .fields
            .iter()
            .any(|name| matches!(name.trim().to_ascii_lowercase().as_str(), "address" | "email"))
    };
    // Without a complete header line the columns are unknown.
    let has_lost_head = records.peek().is_some_and(|first| first.excess.is_some() && is_head(first));
    let columns: Vec<String> = match records.next_if(|first| first.excess.is_none() && is_head(first)) {
        Some(head) => head.fields.iter().map(|name| column(name)).collect(),
        None => COLUMNS.map(str::to_owned).to_vec(),
    };
    records.take(if has_lost_head { 1 } else { usize::MAX }).map(move |record| {
        if let Some(excess) = record.excess {
            return (record.line, Err(excess.to_string()));
        }
        let too_many = record.fields.iter().skip(columns.len()).any(|field| !field.trim().is_empty());
        let fields = columns.iter().zip(record.fields).filter(|(_, field)| !field.trim().is_empty());
        let object = fields.map(|(name, field)| (name.clone(), Value::String(field.trim().to_owned())));
        let entry = match too_many {
            true => Err(format!("has more than {} columns", columns.len())),
            false => read::entry(object.collect(), tenant, now),
        };
        (record.line, entry)
    })
}

fn column(name: &str) -> String {
    match name.trim().to_ascii_lowercase().as_str() {
        "email" => "address".to_owned(),
        name => name.to_owned(),
    }
}

fn from_lines(text: &str, tenant: &TenantId, now: Time) -> impl Iterator<Item = Entry> {
    let lines = text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty());
    lines.map(move |(text, line)| (line, json_line(text).and_then(|object| read::entry(object, tenant, now))))
}

/// The object that a line contains, or that its address means.
fn json_line(text: &str) -> Result<Map<String, Value>, String> {
    const BOUNDS: JsonBounds = JsonBounds { values_max: LINE_VALUES_MAX, text_bytes_max: LINE_BYTES_MAX };
    if text.len() > LINE_BYTES_MAX {
        return Err(format!("has more than {LINE_BYTES_MAX} bytes"));
    }
    if text.trim_start().starts_with('"') {
        let address: String = serde_json::from_str(text)
            .map_err(|error| JsonReadError::Malformed(error.to_string()).to_string())?;
        return Ok(Map::from_iter([("address".to_owned(), Value::String(address))]));
    }
    read_object(text.as_bytes(), BOUNDS).map_err(|fault| match fault {
        JsonReadError::NotObject => "must be an object or an address".to_owned(),
        fault => fault.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant() -> TenantId {
        "acme".parse().unwrap()
    }

    fn faults_of(entries: impl Iterator<Item = Entry>) -> Vec<(usize, String)> {
        let word = |entry: Result<SuppressionRecord, String>| match entry {
            Ok(one) => format!("{} {}", one.address, one.reason.as_str()),
            Err(message) => message.split(':').next().unwrap_or_default().to_owned(),
        };
        entries.map(|(line, entry)| (line, word(entry))).collect()
    }

    #[test]
    fn columns_go_by_name_or_by_place() {
        let now = Time::from_millis(0);
        let named = "Note,Email\nbounced twice,ADA@example.net\n,nobody\n";
        assert_eq!(
            faults_of(from_csv(named, &tenant(), now)),
            [(2, "ada@example.net manual".to_owned()), (3, "address".to_owned())]
        );
        let by_place =
            "a@example.net,complaint\r\nb@example.net,sad\r\n\r\nc@example.net,,\"x\ny\"\r\na,b,c,d,e";
        let wrong: Vec<usize> = from_csv(by_place, &tenant(), now)
            .filter_map(|(line, entry)| entry.is_err().then_some(line))
            .collect();
        assert_eq!(wrong, [2, 4, 6], "an unknown reason, a note of two lines, too many columns");
        let lost = format!("address{}\na@example.net\n", ",x".repeat(40));
        assert_eq!(faults_of(from_csv(&lost, &tenant(), now)), [(1, "has more than 32 columns".to_owned())]);
    }

    #[test]
    fn lines_are_objects_or_addresses() {
        let text = "{\"address\":\"a@example.net\",\"reason\":\"hard_bounce\"}\n\n\"B@example.net\"\n7\n{\n{\"x\":1}";
        assert_eq!(
            faults_of(from_lines(text, &tenant(), Time::from_millis(0))),
            [
                (1, "a@example.net hard_bounce".to_owned()),
                (3, "b@example.net manual".to_owned()),
                (4, "must be an object or an address".to_owned()),
                (5, "is not JSON".to_owned()),
                (6, "x".to_owned()),
            ]
        );
    }
}
