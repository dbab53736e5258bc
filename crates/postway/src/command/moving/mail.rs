//! Mail and suppressed addresses: imported in pages, with one call for each tenant.

use std::collections::BTreeMap;

use postway_api::REQUEST_ID;
use postway_domain::{ClientId, EmailAddress};
use postway_moving::{CarriedKind, CarriedRow, ReferenceSystem, RowFault, RowFormat, RowLocation};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::carrier::{MovingAnswer, MovingClient, MovingMode, ask_with, text};
use super::report::MovingReport;
use super::{PAGE_BYTES, PAGE_ROWS};
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;

/// Rows that wait for a call, all of one kind.
#[derive(Default)]
pub(super) struct MovingPage {
    rows: Vec<(String, CarriedRow)>,
    bytes: usize,
}

/// One message to import.
#[derive(Clone)]
struct MovingMessage {
    place: RowLocation,
    body: Map<String, Value>,
    form: RowFormat,
    /// The id of the request that it came with, where the old system knows it.
    request_id: Option<String>,
}

/// The messages that a rehearsal tries a second time.
#[derive(Default)]
struct SecondTrial {
    /// Messages whose recipient does not exist yet, tried without it.
    without_recipient: Vec<MovingMessage>,
    /// Messages with files, which a batch does not fetch.
    with_files: Vec<MovingMessage>,
}

impl MovingClient {
    /// Collects a row until a page is full.
    pub(super) async fn collect(
        &mut self,
        row: CarriedRow,
        tenant: String,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let bytes: usize = row.body.iter().map(|(name, value)| name.len() + weight(value)).sum();
        let is_other = self.page.rows.first().is_some_and(|(_, first)| first.kind != row.kind);
        let is_full = self.page.rows.len() >= PAGE_ROWS || self.page.bytes + bytes > PAGE_BYTES;
        if is_other || is_full {
            self.flush(report).await?;
        }
        self.page.bytes += bytes;
        self.page.rows.push((tenant, row));
        Ok(())
    }

    /// Tries or imports the collected rows.
    pub(super) async fn flush(&mut self, report: &mut MovingReport) -> Result<(), CommandFailure> {
        let MovingPage { rows, .. } = std::mem::take(&mut self.page);
        let mut by_tenant: BTreeMap<String, Vec<CarriedRow>> = BTreeMap::new();
        for (tenant, row) in rows {
            by_tenant.entry(tenant).or_default().push(row);
        }
        for (tenant, rows) in by_tenant {
            match rows.first().map(|row| row.kind) {
                Some(CarriedKind::Suppression) => self.suppress(&tenant, rows, report).await?,
                _ => self.send(&tenant, rows, report).await?,
            }
        }
        Ok(())
    }

    async fn suppress(
        &mut self,
        tenant: &str,
        rows: Vec<CarriedRow>,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let mut lines = String::new();
        let mut count = 0;
        for row in rows {
            match text(&row.body, "address").parse::<EmailAddress>() {
                Err(error) => report.wrong.push(RowFault::new(&row.place, "payload.to", error.to_string())),
                Ok(_) if self.expect_tenant(&row.place, tenant, report).await? => {
                    lines.push_str(&Value::Object(row.body).to_string());
                    lines.push('\n');
                    count += 1;
                }
                Ok(_) => {}
            }
        }
        if self.mode == MovingMode::Import && count > 0 {
            let (path, query) = (["v1", "suppressions", "import"], [("format", "jsonl".to_owned())]);
            let done = self
                .ask(Some(tenant), Method::POST, &path, &query, RequestBody::Mail(lines.into_bytes()))
                .await?;
            if !done.status.is_success() {
                return Err(done.failure());
            }
        }
        report.carried(CarriedKind::Suppression, count);
        Ok(())
    }

    async fn send(
        &mut self,
        tenant: &str,
        rows: Vec<CarriedRow>,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let mut letters = Vec::with_capacity(rows.len());
        for CarriedRow { place, form, mut body, .. } in rows {
            if !self.expect_tenant(&place, tenant, report).await? {
                continue;
            }
            let is_named = body.get("account").is_some_and(|account| !account.is_null());
            if !is_named && !self.leaves_by_default(tenant, report).await? {
                let message = format!(
                    "tenant `{tenant}` has the sandbox as its default account, which captures mail: give it a real one with `postway tenants update {tenant} --default-account ID`"
                );
                let field = if self.system == ReferenceSystem::Proxy { "account_id" } else { "" };
                report.wrong.push(RowFault::new(&place, field, message));
                continue;
            }
            let request_id = body.remove(REQUEST_ID).and_then(|id| id.as_str().map(str::to_owned));
            letters.push(MovingMessage { place, body, form, request_id });
        }
        match self.mode {
            MovingMode::Import => {
                self.post(tenant, letters, report).await?;
                crash_point("moving_page");
            }
            MovingMode::Rehearse => self.rehearse(tenant, letters, report).await?,
        }
        Ok(())
    }

    /// Tries mail whose tenant, account or recipient may not be there yet: what would be made is left out of
    /// it.
    async fn rehearse(
        &mut self,
        tenant: &str,
        mut letters: Vec<MovingMessage>,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let is_new = self.planned_tenants.contains(tenant);
        letters.retain(|letter| match text(&letter.body, "id").parse::<ClientId>() {
            Ok(_) => true,
            Err(error) => {
                report.wrong.push(RowFault::new(&letter.place, "id", error.to_string()));
                false
            }
        });
        for letter in &mut letters {
            if is_new || self.is_planned_account(tenant, letter.body.get("account")) {
                letter.body.remove("account");
            }
            if is_new {
                // In the other tenant the id may belong to another message, and files of an endpoint are not
                // available.
                letter.body.remove("id");
                if let Some(Value::Array(files)) = letter.body.get_mut("attachments") {
                    files.retain(|file| file["fetch_mode"] != "endpoint");
                }
            }
        }
        let trial = self.trial_tenant(tenant).to_owned();
        let once_more = self.post(&trial, letters, report).await?;
        let mut with_files = once_more.with_files;
        if !once_more.without_recipient.is_empty() {
            let known = self.post(&trial, once_more.without_recipient, report).await?;
            with_files.extend(known.with_files);
        }
        match is_new {
            // The tenant decides where files may come from, and it does not exist yet.
            true => report.carried(CarriedKind::Message, with_files.len() as u64),
            false => {
                for letter in with_files {
                    self.fetch(&trial, letter, report).await?;
                }
            }
        }
        Ok(())
    }

    /// Tries one message with its files, which a batch does not fetch.
    async fn fetch(
        &mut self,
        tenant: &str,
        letter: MovingMessage,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        let (path, query) = (["v1", "messages"], self.query(true));
        let body = Value::Object(letter.body);
        let answer = self.ask(Some(tenant), Method::POST, &path, &query, RequestBody::Json(&body)).await?;
        match answer.status.is_success() {
            true => report.carried(CarriedKind::Message, 1),
            false => report.wrong.extend(self.refused(
                &letter.place,
                CarriedKind::Message,
                letter.form,
                &answer,
            )?),
        }
        Ok(())
    }

    /// Posts a batch, in halves where it is too large. Returns the messages that a rehearsal should try
    /// again.
    async fn post(
        &mut self,
        tenant: &str,
        letters: Vec<MovingMessage>,
        report: &mut MovingReport,
    ) -> Result<SecondTrial, CommandFailure> {
        let (mut once_more, mut rest) = (SecondTrial::default(), self.by_request(letters));
        while let Some(mut letters) = rest.pop() {
            if letters.is_empty() {
                continue;
            }
            let query = self.query(self.mode == MovingMode::Rehearse);
            let request_id = letters.first().and_then(|letter| letter.request_id.clone());
            let messages: Vec<Value> =
                letters.iter().map(|letter| Value::Object(letter.body.clone())).collect();
            let body = json!({"messages": messages});
            let path = ["v1", "messages", "batch"];
            let client = self.client.for_tenant(tenant).for_request(request_id);
            let answer = ask_with(&client, Method::POST, &path, &query, RequestBody::Json(&body)).await?;
            if answer.status == StatusCode::PAYLOAD_TOO_LARGE && letters.len() > 1 {
                rest.push(letters.split_off(letters.len() / 2));
                rest.push(letters);
                continue;
            }
            self.settle(letters, &answer, &mut once_more, report)?;
        }
        Ok(once_more)
    }

    /// The fields that a call sets for all of its mail. 000 had no bound for subjects, so its compatibility
    /// API has none.
    fn query(&self, dry_run: bool) -> Vec<(&'static str, String)> {
        let any_subject = self.system == ReferenceSystem::Outbox;
        let flags = [("dry_run", dry_run), ("any_subject", any_subject)];
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, "true".to_owned())).collect()
    }

    /// Groups of messages that need a call of their own: a call has one request id.
    fn by_request(&self, letters: Vec<MovingMessage>) -> Vec<Vec<MovingMessage>> {
        if self.mode == MovingMode::Rehearse {
            return vec![letters];
        }
        let mut calls: BTreeMap<Option<String>, Vec<MovingMessage>> = BTreeMap::new();
        for letter in letters {
            calls.entry(letter.request_id.clone()).or_default().push(letter);
        }
        calls.into_values().collect()
    }

    fn settle(
        &mut self,
        letters: Vec<MovingMessage>,
        answer: &MovingAnswer,
        once_more: &mut SecondTrial,
        report: &mut MovingReport,
    ) -> Result<(), CommandFailure> {
        if !answer.status.is_success() {
            for letter in &letters {
                report.wrong.extend(self.refused(
                    &letter.place,
                    CarriedKind::Message,
                    letter.form,
                    answer,
                )?);
            }
            return Ok(());
        }
        let results = answer.body["results"].as_array().map_or(&[][..], Vec::as_slice);
        if results.len() != letters.len() {
            return Err(anyhow::anyhow!("the server did not answer for every message").into());
        }
        let is_trial = self.mode == MovingMode::Rehearse;
        for (mut letter, result) in letters.into_iter().zip(results) {
            match &result["error"] {
                Value::Null if result["repeated"] == true => report.here(CarriedKind::Message),
                Value::Null if is_trial && has_files_elsewhere(&letter.body) => {
                    once_more.with_files.push(letter)
                }
                Value::Null => report.carried(CarriedKind::Message, 1),
                error if is_trial && letter.body.contains_key("recipient") && is_about_recipient(error) => {
                    letter.body.remove("recipient");
                    once_more.without_recipient.push(letter);
                }
                error => {
                    report.wrong.extend(self.faults(&letter.place, CarriedKind::Message, letter.form, error))
                }
            }
        }
        Ok(())
    }
}

/// Whether a message has files that are fetched later.
fn has_files_elsewhere(body: &Map<String, Value>) -> bool {
    let files = body.get("attachments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_here = |file: &Value| {
        let stored = file["storage_path"].as_str();
        !file["content"].is_null()
            || file["fetch_mode"] == "base64"
            || stored.is_some_and(|path| path.starts_with("base64:"))
    };
    files.iter().any(|file| !is_here(file))
}

/// Whether only a missing recipient is at fault: recipients are imported before the mail.
fn is_about_recipient(error: &Value) -> bool {
    let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
    let is_of_it =
        |detail: &Value| detail["field"].as_str().is_some_and(|field| field.starts_with("recipient"));
    !details.is_empty() && details.iter().all(is_of_it)
}

/// About how many bytes of JSON a value is.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 4,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 4,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + weight(value) + 4).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// A point where a test can make the command die, as a power cut would.
fn crash_point(name: &'static str) {
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name, |_| std::process::abort());
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_recipient_that_is_missing_is_forgiven() {
        assert!(is_about_recipient(&json!({"details": [{"field": "recipient.external_id"}]})));
        assert!(!is_about_recipient(&json!({"details": [{"field": "recipient"}, {"field": "to"}]})));
        assert!(!is_about_recipient(&json!({"details": []})));
    }

    #[test]
    fn files_that_are_fetched_later_are_known() {
        for (file, is_elsewhere) in [
            (json!({"content": "aGk="}), false),
            (json!({"storage_path": "base64:aGk="}), false),
            (json!({"storage_path": "aGk=", "fetch_mode": "base64"}), false),
            (json!({"storage_path": "/a.pdf"}), true),
            (json!({"path": "/a.pdf"}), true),
            (json!({"url": "https://x.example/a"}), true),
        ] {
            let body = Map::from_iter([("attachments".to_owned(), json!([file]))]);
            assert_eq!(has_files_elsewhere(&body), is_elsewhere, "{body:?}");
        }
    }

    #[test]
    fn the_weight_of_a_body_is_about_that_of_its_json() {
        let body = json!({"text": "x".repeat(1_000), "to": ["a@x.example"], "n": 1});
        let (guess, real) = (weight(&body), body.to_string().len());
        assert!(guess >= real - 20 && guess < real + 60, "{guess} {real}");
    }
}
