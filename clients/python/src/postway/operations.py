"""Every call of the API. Made by clients/make of the OpenAPI document. Do not edit."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Literal, Optional, Union
from urllib.parse import quote

from . import types


def _segment(value: Union[str, int]) -> str:
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} cannot be an id")
    return quote(str(value), safe="")


class Operations:
    """The calls; `Client` adds how they are made."""

    def _call(
        self,
        method: str,
        path: str,
        *,
        answer: str,
        query: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, Optional[str]]] = None,
        body: Any = None,
        body_type: str = "application/json",
        keyed: bool = False,
    ) -> Any:
        raise NotImplementedError

    def _each(self, path: str, query: Dict[str, Any]) -> Iterator[Any]:
        raise NotImplementedError

    def get_liveness(self) -> types.Health:
        """Liveness (`GET /health/live`).

        Answers as long as the process serves requests, whatever its database does. For liveness probes; no key is
        needed.
        """
        answered: types.Health = self._call("GET", "/health/live", answer="json")
        return answered

    def get_readiness(self) -> types.Health:
        """Readiness (`GET /health/ready`).

        200 if a write to the database just succeeded, 503 otherwise.
        """
        answered: types.Health = self._call("GET", "/health/ready", answer="json")
        return answered

    def report_provider_events(self, provider: str, token: str, body: bytes) -> None:
        """Report events of mail (`POST /hooks/{provider}/{token}`).

        For providers, in their own form: SES through SNS, SendGrid, Mailgun, Postmark, Resend, or the documented
        JSON of `http`. A call must be signed as the account's hook says. 200 means that its events are stored. No
        key is needed. 401 says that the signature is missing, wrong or too old, and 404 that there is no such
        hook.
        """
        self._call(
            "POST",
            f"/hooks/{_segment(provider)}/{_segment(token)}",
            answer="nothing",
            body=body,
            body_type="application/octet-stream",
        )

    def get_metrics(self) -> str:
        """Show metrics (`GET /metrics`).

        In Prometheus' text format. No key is needed unless `telemetry.metrics_key` is set: then that one, or the
        admin key.
        """
        answered: str = self._call("GET", "/metrics", answer="text")
        return answered

    def show_unsubscribe(self, token: str) -> str:
        """Show the unsubscribe page (`GET /unsubscribe/{token}`).

        For the reader of a mail, in the language of the browser. It changes nothing. It needs no key.
        """
        answered: str = self._call("GET", f"/unsubscribe/{_segment(token)}", answer="text")
        return answered

    def unsubscribe(self, token: str) -> str:
        """Unsubscribe or resubscribe (`POST /unsubscribe/{token}`).

        The form says what to do: what a mail program posts by itself (RFC 8058: `List-Unsubscribe=One-Click`), or
        what the buttons of the page post, `unsubscribe=1` or `undo=1`. Repeating it changes nothing. It needs no
        key.
        """
        answered: str = self._call("POST", f"/unsubscribe/{_segment(token)}", answer="text")
        return answered

    def list_accounts(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.AccountList:
        """List accounts (`GET /v1/accounts`).

        All accounts of your tenant by id, without their secrets, each with its circuit and the use of its limits.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.AccountList = self._call(
            "GET",
            "/v1/accounts",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_accounts(self, *, limit: Optional[int] = None) -> Iterator[types.Account]:
        """Everything that `list_accounts` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/accounts", {"limit": limit})

    def create_account(self, body: types.AccountRequest, *, dry_run: Optional[bool] = None) -> types.Account:
        """Create an account (`POST /v1/accounts`).

        The settings are checked, but nothing is called: `POST /v1/accounts/{id}/test` tests them. 409 if the id
        is taken.

        `dry_run`: Only check; store nothing.
        """
        answered: types.Account = self._call(
            "POST",
            "/v1/accounts",
            answer="json",
            query={"dry_run": dry_run},
            body=body,
        )
        return answered

    def get_account(self, id: str) -> types.Account:
        """Show an account (`GET /v1/accounts/{id}`).

        The account with its current state: whether it is suspended, whether and why its circuit is open, and the
        use of its limits.
        """
        answered: types.Account = self._call("GET", f"/v1/accounts/{_segment(id)}", answer="json")
        return answered

    def replace_account(self, id: str, body: types.AccountRequest) -> types.Account:
        """Replace an account's settings (`PUT /v1/accounts/{id}`).

        Absent fields take their defaults; the password or secret key is kept unless a new one is given or the
        destination changes. With `version`, the change is made only if the account still has that version; 409
        otherwise.
        """
        answered: types.Account = self._call("PUT", f"/v1/accounts/{_segment(id)}", answer="json", body=body)
        return answered

    def change_account(self, id: str, body: types.AccountRequest) -> types.Account:
        """Change an account (`PATCH /v1/accounts/{id}`).

        Changes the given fields and leaves the others. A change of host, port, region, endpoint, base_url or
        proxy, and any reduction of TLS protection, requires the password or key again. With `version`, the change
        is made only if the account still has that version; 409 otherwise.
        """
        answered: types.Account = self._call(
            "PATCH",
            f"/v1/accounts/{_segment(id)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_account(self, id: str, *, force: Optional[bool] = None) -> None:
        """Delete an account (`DELETE /v1/accounts/{id}`).

        409 while mail waits for it, while it is its tenant's default, while another account falls back to it, or,
        unless `force` is set, while a rule forwards through it or a route names it.

        `force`: Delete it even if rules forward through it, whose mail then fails, or routes name it, which then
        pass it over.
        """
        self._call("DELETE", f"/v1/accounts/{_segment(id)}", answer="nothing", query={"force": force})

    def activate_account(self, id: str) -> types.Account:
        """Activate an account (`POST /v1/accounts/{id}/activate`).

        Its mail is sent again.
        """
        answered: types.Account = self._call("POST", f"/v1/accounts/{_segment(id)}/activate", answer="json")
        return answered

    def get_account_hook(self, id: str) -> types.ProviderHook:
        """Show an account's hook (`GET /v1/accounts/{id}/hook`).

        Without its token and its secret.
        """
        answered: types.ProviderHook = self._call("GET", f"/v1/accounts/{_segment(id)}/hook", answer="json")
        return answered

    def put_account_hook(self, id: str, body: types.ProviderHookRequest) -> types.ProviderHookWithToken:
        """Create or change an account's hook (`PUT /v1/accounts/{id}/hook`).

        The address to which the account's provider reports deliveries, bounces, complaints, opens and clicks. A
        new hook is answered with its `url`, which is shown only once; a change keeps it, unless the provider is
        another. Secrets that are left out stay.
        """
        answered: types.ProviderHookWithToken = self._call(
            "PUT",
            f"/v1/accounts/{_segment(id)}/hook",
            answer="json",
            body=body,
        )
        return answered

    def delete_account_hook(self, id: str) -> None:
        """Delete an account's hook (`DELETE /v1/accounts/{id}/hook`).

        What it reported and was not processed yet is not processed any more.
        """
        self._call("DELETE", f"/v1/accounts/{_segment(id)}/hook", answer="nothing")

    def list_account_hook_events(
        self,
        id: str,
        *,
        status: Optional[Literal["waiting", "leased", "applied", "ignored", "unmatched", "dead"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.ReportedEventList:
        """List what a provider reported (`GET /v1/accounts/{id}/hook/events`).

        The newest first, kept for at least a week: which message each event was about, and why one was not
        applied.

        `status`: Only those in this status. `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to
        continue: the `next_cursor` of the previous page.
        """
        answered: types.ReportedEventList = self._call(
            "GET",
            f"/v1/accounts/{_segment(id)}/hook/events",
            answer="json",
            query={"status": status, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_account_hook_events(
        self,
        id: str,
        *,
        status: Optional[Literal["waiting", "leased", "applied", "ignored", "unmatched", "dead"]] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.ReportedEvent]:
        """Everything that `list_account_hook_events` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/accounts/{_segment(id)}/hook/events", {"status": status, "limit": limit})

    def rotate_account_hook(self, id: str) -> types.ProviderHookWithToken:
        """Replace a hook's URL (`POST /v1/accounts/{id}/hook/rotate`).

        The new `url` is shown only once. The earlier one stops within a second on every node: give the new one to
        the provider at once, which repeats what was refused meanwhile.
        """
        answered: types.ProviderHookWithToken = self._call(
            "POST",
            f"/v1/accounts/{_segment(id)}/hook/rotate",
            answer="json",
        )
        return answered

    def suspend_account(self, id: str) -> types.Account:
        """Suspend an account (`POST /v1/accounts/{id}/suspend`).

        Its mail is not sent, on any node; mail is still accepted. Mail that is being transmitted is finished.
        """
        answered: types.Account = self._call("POST", f"/v1/accounts/{_segment(id)}/suspend", answer="json")
        return answered

    def test_account(self, id: str, body: Optional[types.AccountTestRequest] = None) -> types.AccountTest:
        """Test an account (`POST /v1/accounts/{id}/test`).

        Connects, secures and signs in; with `to`, also sends a test mail through the account. The answer is 200
        even if a step fails: see `ok`.
        """
        answered: types.AccountTest = self._call(
            "POST",
            f"/v1/accounts/{_segment(id)}/test",
            answer="json",
            body=body,
        )
        return answered

    def list_archive(
        self,
        *,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.ArchivedCopyList:
        """List the archive (`GET /v1/archive`).

        Stored copies of what was sent, those of the latest messages first, and how many copies wait.

        `since`: Of messages accepted at or after this time. `until`: Of messages accepted before this time.
        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.ArchivedCopyList = self._call(
            "GET",
            "/v1/archive",
            answer="json",
            query={"since": since, "until": until, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_archive(
        self,
        *,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.ArchivedCopy]:
        """Everything that `list_archive` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/archive", {"since": since, "until": until, "limit": limit})

    def get_archived(self, id: str) -> types.ArchivedCopy:
        """Show an archived copy (`GET /v1/archive/{id}`).

        Where the copy is, and until when.
        """
        answered: types.ArchivedCopy = self._call("GET", f"/v1/archive/{_segment(id)}", answer="json")
        return answered

    def delete_archived(self, id: str) -> None:
        """Delete an archived copy (`DELETE /v1/archive/{id}`).

        Deletes a copy before its time, for example because a person asks for it. Only an admin may, so that what
        is archived stays even if a tenant's keys are lost.
        """
        self._call("DELETE", f"/v1/archive/{_segment(id)}", answer="nothing")

    def get_raw_archived(self, id: str) -> bytes:
        """Get an archived mail (`GET /v1/archive/{id}/raw`).

        The mail as it was sent, below fields with its envelope; an encrypted copy is opened.
        """
        answered: bytes = self._call("GET", f"/v1/archive/{_segment(id)}/raw", answer="bytes")
        return answered

    def list_audit(
        self,
        *,
        tenant: Optional[str] = None,
        actor: Optional[str] = None,
        action: Optional[str] = None,
        target: Optional[str] = None,
        format: Optional[Literal["json", "jsonl"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.AuditList:
        """Read the audit log (`GET /v1/audit`).

        For the admin key and admins of all tenants. Every call that changed a tenant, user, key, account, batch,
        suppression, template, recipient, signing key, webhook, mailbox, rule or contact, or removed messages,
        newest first. A page with `actor`, `action` or `target` examines some thousands of entries: as long as
        there is a `next_cursor`, continue with it, even after a page with fewer entries than requested, or none.
        With `format=jsonl`, or `Accept: application/x-ndjson`, the complete log is returned as JSON lines.

        `tenant`: Only changes to this tenant. `actor`: Only what this one did: `admin`, `user:ada`, `key:…`.
        `action`: Only these actions: one, such as `account.change`, or all that begin so, such as `account.`.
        `target`: Only changes of this resource. `format`: `json` (default), or `jsonl` for the complete log, one
        entry per line. `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the
        `next_cursor` of the previous page.
        """
        answered: types.AuditList = self._call(
            "GET",
            "/v1/audit",
            answer="json",
            query={"tenant": tenant, "actor": actor, "action": action, "target": target, "format": format, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_audit(
        self,
        *,
        tenant: Optional[str] = None,
        actor: Optional[str] = None,
        action: Optional[str] = None,
        target: Optional[str] = None,
        format: Optional[Literal["json", "jsonl"]] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.AuditEntry]:
        """Everything that `list_audit` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/audit", {"tenant": tenant, "actor": actor, "action": action, "target": target, "format": format, "limit": limit})

    def follow_audit(
        self,
        *,
        after: Optional[int] = None,
        limit: Optional[int] = None,
        wait: Optional[int] = None,
        format: Optional[Literal["json", "jsonl"]] = None,
    ) -> types.AuditLineList:
        """Follow the audit log (`GET /v1/audit/lines`).

        For the admin key and admins of all tenants. The lines after a position, in the order in which they were
        written, with their digests. With `wait`, an empty answer comes only after that many seconds. With
        `format=jsonl`, or `Accept: application/x-ndjson`, all lines after the position are returned as JSON
        lines.

        `after`: The position of the last line that you have; from the first kept line when absent. `limit`: How
        many, 1 to 500; 50 when absent. `wait`: How many seconds to wait for new lines, at most 30. `format`:
        `json` (default), or `jsonl` for all lines that follow, one per line.
        """
        answered: types.AuditLineList = self._call(
            "GET",
            "/v1/audit/lines",
            answer="json",
            query={"after": after, "limit": limit, "wait": wait, "format": format},
        )
        return answered

    def list_batches(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.BatchList:
        """List batches (`GET /v1/batches`).

        Batches that have had messages, and batches suspended before their first.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.BatchList = self._call(
            "GET",
            "/v1/batches",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_batches(self, *, limit: Optional[int] = None) -> Iterator[types.Batch]:
        """Everything that `list_batches` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/batches", {"limit": limit})

    def get_batch(self, code: str) -> types.BatchProgress:
        """Show a batch (`GET /v1/batches/{code}`).

        The batch, and how many of its messages are in each status.
        """
        answered: types.BatchProgress = self._call("GET", f"/v1/batches/{_segment(code)}", answer="json")
        return answered

    def activate_batch(self, code: str) -> types.Batch:
        """Activate a batch (`POST /v1/batches/{code}/activate`).

        Its mail is sent again.
        """
        answered: types.Batch = self._call("POST", f"/v1/batches/{_segment(code)}/activate", answer="json")
        return answered

    def suspend_batch(self, code: str) -> types.Batch:
        """Suspend a batch (`POST /v1/batches/{code}/suspend`).

        Its mail is not sent, on any node, until the batch is activated. Mail that is being transmitted is
        finished. The code need not have been used yet.
        """
        answered: types.Batch = self._call("POST", f"/v1/batches/{_segment(code)}/suspend", answer="json")
        return answered

    def list_bulk_actions(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.BulkActionList:
        """List bulk actions (`GET /v1/bulk-actions`).

        The latest first: those that are running, and those that ended in the last 30 days.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.BulkActionList = self._call(
            "GET",
            "/v1/bulk-actions",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_bulk_actions(self, *, limit: Optional[int] = None) -> Iterator[types.BulkAction]:
        """Everything that `list_bulk_actions` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/bulk-actions", {"limit": limit})

    def create_bulk_action(
        self,
        body: types.BulkActionRequest,
        *,
        dry_run: Optional[bool] = None,
    ) -> types.BulkAction:
        """Act on many messages (`POST /v1/bulk-actions`).

        Cancels, retries, reschedules, resolves or suppresses all messages of a filter or a list of ids. The
        answer comes at once; the server then does it step by step, from the newest message to the oldest, each
        message at most once, also across a restart. Messages accepted after the request are not touched. A
        message whose state does not admit the action is left as it is and counted in `skipped`. With
        `dry_run=true` nothing is done: the answer says how many messages match, and how many of them would
        change.

        `dry_run`: Whether only to say what would be done.
        """
        answered: types.BulkAction = self._call(
            "POST",
            "/v1/bulk-actions",
            answer="json",
            query={"dry_run": dry_run},
            body=body,
        )
        return answered

    def get_bulk_action(self, id: str) -> types.BulkAction:
        """Show a bulk action (`GET /v1/bulk-actions/{id}`).

        How far it is.
        """
        answered: types.BulkAction = self._call("GET", f"/v1/bulk-actions/{_segment(id)}", answer="json")
        return answered

    def stop_bulk_action(self, id: str) -> types.BulkAction:
        """Stop a bulk action (`POST /v1/bulk-actions/{id}/stop`).

        Nothing more is done from now on; what was done stays. 409 if it has ended.
        """
        answered: types.BulkAction = self._call(
            "POST",
            f"/v1/bulk-actions/{_segment(id)}/stop",
            answer="json",
        )
        return answered

    def clean_up(self, *, older_than_seconds: Optional[int] = None) -> types.Cleanup:
        """Remove old messages (`POST /v1/cleanup`).

        Messages that ended and were completely reported more than `older_than_seconds` ago; the tenant's own
        `report_retention_seconds`, or the gateway's, when absent. Messages whose notifications were given up stay
        for `unreported_retention_days` at least. A call runs for at most 20 seconds and then says that there is
        `more`.

        `older_than_seconds`: The minimum age, up to 315,360,000; 0 for all.
        """
        answered: types.Cleanup = self._call(
            "POST",
            "/v1/cleanup",
            answer="json",
            query={"older_than_seconds": older_than_seconds},
        )
        return answered

    def list_contacts(
        self,
        *,
        name: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.ContactList:
        """List contacts (`GET /v1/contacts`).

        With `name`, only the contact with that name; case and white space do not matter.

        `name`: Only the one with this name. `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to
        continue: the `next_cursor` of the previous page.
        """
        answered: types.ContactList = self._call(
            "GET",
            "/v1/contacts",
            answer="json",
            query={"name": name, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_contacts(
        self,
        *,
        name: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.Contact]:
        """Everything that `list_contacts` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/contacts", {"name": name, "limit": limit})

    def create_contact(self, body: types.ContactRequest) -> types.Contact:
        """Create a contact (`POST /v1/contacts`).

        409 if the id or the name is taken. Case and spacing of names do not matter.
        """
        answered: types.Contact = self._call("POST", "/v1/contacts", answer="json", body=body)
        return answered

    def get_contact(self, id: str) -> types.Contact:
        """Show a contact (`GET /v1/contacts/{id}`).

        One name and its addresses.
        """
        answered: types.Contact = self._call("GET", f"/v1/contacts/{_segment(id)}", answer="json")
        return answered

    def change_contact(self, id: str, body: types.ContactRequest) -> types.Contact:
        """Change a contact (`PATCH /v1/contacts/{id}`).

        Changes the given fields; `addresses` is replaced as a list. With `version`, the change is made only if
        the contact still has that version; 409 otherwise.
        """
        answered: types.Contact = self._call(
            "PATCH",
            f"/v1/contacts/{_segment(id)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_contact(self, id: str) -> None:
        """Delete a contact (`DELETE /v1/contacts/{id}`).

        Rules that look up its name find no address from then on; forwarded mail is not affected.
        """
        self._call("DELETE", f"/v1/contacts/{_segment(id)}", answer="nothing")

    def list_dead_letters(
        self,
        *,
        account: Optional[str] = None,
        batch: Optional[str] = None,
        recipient: Optional[str] = None,
        tag: Optional[str] = None,
        request_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        metadata: Optional[str] = None,
        subject: Optional[str] = None,
        error_code: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.MessageList:
        """List dead letters (`GET /v1/dead-letters`).

        Failed messages whose retries are exhausted, newest first, each with its last `reason`, with the filters
        of `GET /v1/messages` except `status`.

        `account`: Only those of this account. `batch`: Only those of this batch. `recipient`: Only those to this
        address. `tag`: Only those with this label. `request_id`: Only those that came with this request.
        `provider_message_id`: Only the message with this id of the relay. `metadata`: Only those with this field
        in their metadata, as `key=value`. `subject`: Only those whose subject contains this, in any case.
        `error_code`: Only those whose latest failure has this code, such as `smtp_550`. `since`: Accepted at or
        after this time. `until`: Accepted before this time. `limit`: How many, 1 to 500; 50 when absent.
        `cursor`: Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.MessageList = self._call(
            "GET",
            "/v1/dead-letters",
            answer="json",
            query={"account": account, "batch": batch, "recipient": recipient, "tag": tag, "request_id": request_id, "provider_message_id": provider_message_id, "metadata": metadata, "subject": subject, "error_code": error_code, "since": since, "until": until, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_dead_letters(
        self,
        *,
        account: Optional[str] = None,
        batch: Optional[str] = None,
        recipient: Optional[str] = None,
        tag: Optional[str] = None,
        request_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        metadata: Optional[str] = None,
        subject: Optional[str] = None,
        error_code: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.MessageSummary]:
        """Everything that `list_dead_letters` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/dead-letters", {"account": account, "batch": batch, "recipient": recipient, "tag": tag, "request_id": request_id, "provider_message_id": provider_message_id, "metadata": metadata, "subject": subject, "error_code": error_code, "since": since, "until": until, "limit": limit})

    def replay_dead_letters(self, body: types.ReplayRequest) -> types.ReplayResult:
        """Replay dead letters (`POST /v1/dead-letters/replay`).

        Puts failed messages back in the queue with all their retries. A message that cannot be replayed does not
        stop the others.
        """
        answered: types.ReplayResult = self._call("POST", "/v1/dead-letters/replay", answer="json", body=body)
        return answered

    def list_signing_keys(
        self,
        *,
        domain: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.SigningKeyList:
        """List signing keys (`GET /v1/dkim`).

        All keys of your tenant, each with the DNS record to publish. Private halves are never shown.

        `domain`: Only those of this domain. `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where
        to continue: the `next_cursor` of the previous page.
        """
        answered: types.SigningKeyList = self._call(
            "GET",
            "/v1/dkim",
            answer="json",
            query={"domain": domain, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_signing_keys(
        self,
        *,
        domain: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.SigningKey]:
        """Everything that `list_signing_keys` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/dkim", {"domain": domain, "limit": limit})

    def create_signing_key(self, body: types.SigningKeyRequest) -> types.SigningKey:
        """Create a signing key (`POST /v1/dkim`).

        Publish `dns_record` as a TXT record at `dns_name`; receivers cannot verify signatures before. 409 if
        domain and selector are taken.
        """
        answered: types.SigningKey = self._call("POST", "/v1/dkim", answer="json", body=body)
        return answered

    def get_signing_key(self, domain: str, selector: str) -> types.SigningKey:
        """Show a signing key (`GET /v1/dkim/{domain}/{selector}`).

        One key with the DNS record to publish. Its private half is never shown.
        """
        answered: types.SigningKey = self._call(
            "GET",
            f"/v1/dkim/{_segment(domain)}/{_segment(selector)}",
            answer="json",
        )
        return answered

    def delete_signing_key(self, domain: str, selector: str) -> None:
        """Delete a signing key (`DELETE /v1/dkim/{domain}/{selector}`).

        This cannot be undone. Leave its record published for a few days, until the mail it signed has arrived.
        """
        self._call("DELETE", f"/v1/dkim/{_segment(domain)}/{_segment(selector)}", answer="nothing")

    def activate_signing_key(self, domain: str, selector: str) -> types.SigningKey:
        """Activate a signing key (`POST /v1/dkim/{domain}/{selector}/activate`).

        Mail of its domain that is composed from now on is signed with it. Publish its record first.
        """
        answered: types.SigningKey = self._call(
            "POST",
            f"/v1/dkim/{_segment(domain)}/{_segment(selector)}/activate",
            answer="json",
        )
        return answered

    def suspend_signing_key(self, domain: str, selector: str) -> types.SigningKey:
        """Suspend a signing key (`POST /v1/dkim/{domain}/{selector}/suspend`).

        Mail is sent without its signature; mail composed before keeps it.
        """
        answered: types.SigningKey = self._call(
            "POST",
            f"/v1/dkim/{_segment(domain)}/{_segment(selector)}/suspend",
            answer="json",
        )
        return answered

    def list_domains(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.DomainList:
        """List domains (`GET /v1/domains`).

        The domains that you send from: those with signing keys, the one that bounces come back to, and those that
        you had checked or that others report about. Each with what the last check of its DNS found.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.DomainList = self._call(
            "GET",
            "/v1/domains",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_domains(self, *, limit: Optional[int] = None) -> Iterator[types.Domain]:
        """Everything that `list_domains` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/domains", {"limit": limit})

    def delete_domain(self, domain: str) -> None:
        """Forget a domain (`DELETE /v1/domains/{domain}`).

        Removes what its checks found. A domain with signing keys, and the one that bounces come back to, stay in
        the list.
        """
        self._call("DELETE", f"/v1/domains/{_segment(domain)}", answer="nothing")

    def check_domain(self, domain: str) -> types.Domain:
        """Check a domain (`POST /v1/domains/{domain}/check`).

        Asks DNS now for SPF, DKIM, DMARC and MX, and whether MTA-STS and TLS-RPT are announced, and remembers
        what was found. A domain that only takes bounces is asked for its MX. The check is repeated every six
        hours from then on.
        """
        answered: types.Domain = self._call("POST", f"/v1/domains/{_segment(domain)}/check", answer="json")
        return answered

    def list_domain_reports(
        self,
        domain: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.DomainReportList:
        """List reports about a domain (`GET /v1/domains/{domain}/reports`).

        DMARC aggregate reports and TLS reports that came to mailboxes with the role `domain_reports`, the latest
        first. They are kept for 400 days.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.DomainReportList = self._call(
            "GET",
            f"/v1/domains/{_segment(domain)}/reports",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_domain_reports(self, domain: str, *, limit: Optional[int] = None) -> Iterator[types.DomainReport]:
        """Everything that `list_domain_reports` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/domains/{_segment(domain)}/reports", {"limit": limit})

    def summarize_domain_reports(
        self,
        domain: str,
        *,
        days: Optional[int] = None,
    ) -> types.DomainReportSummary:
        """Sum up the reports about a domain (`GET /v1/domains/{domain}/reports/summary`).

        Who sends mail in the domain's name, how much of it passes SPF, DKIM and DMARC, day by day, and with which
        results other servers connect to the domain's own. Each report counts once. Reports whose mail is proven
        not to be from its sender do not count.

        `days`: How many days, today included, 1 to 400; 30 when absent.
        """
        answered: types.DomainReportSummary = self._call(
            "GET",
            f"/v1/domains/{_segment(domain)}/reports/summary",
            answer="json",
            query={"days": days},
        )
        return answered

    def erase_address(self, body: types.EraseRequest) -> types.Erasure:
        """Erase an address (`POST /v1/erase`).

        Removes it from the messages that have ended. Entries of the suppression list and of the recipient
        directory stay: delete them separately. A call runs for at most 20 seconds and then says that there is
        `more`.
        """
        answered: types.Erasure = self._call("POST", "/v1/erase", answer="json", body=body)
        return answered

    def read_events(
        self,
        *,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        wait: Optional[int] = None,
    ) -> types.Feed:
        """Read the feed (`GET /v1/events`).

        The events of your messages, in order. Keep the `cursor` of the last entry you have processed and pass it
        as `after`. After a crash some entries come again, so compare `uid` and `sequence`. With `wait`, an empty
        answer comes only after that many seconds. With `Accept: text/event-stream` the entries come as server-
        sent events, whose `id` is the cursor.

        `after`: A cursor, or `now` for entries from now on; when absent, all stored entries. `limit`: How many, 1
        to 500; 50 when absent. `wait`: How many seconds to wait for new entries, at most 30.
        """
        answered: types.Feed = self._call(
            "GET",
            "/v1/events",
            answer="json",
            query={"after": after, "limit": limit, "wait": wait},
        )
        return answered

    def list_inbound(
        self,
        *,
        mailbox: Optional[str] = None,
        status: Optional[Literal["received", "routing", "routed", "no_match", "gone", "waiting", "dead"]] = None,
        kind: Optional[Literal["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.InboundList:
        """List inbound mail (`GET /v1/inbound`).

        Newest first. A mail must match every filter. Unknown parameters are refused.

        `mailbox`: Only those of this mailbox. `status`: Only those with this status: `received`, `routing`,
        `routed`, `no_match`, `gone`, `waiting` or `dead`. `kind`: Only those of this kind: `bounce`, `delay`,
        `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`. `limit`: How many, 1 to 500;
        50 when absent. `cursor`: Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.InboundList = self._call(
            "GET",
            "/v1/inbound",
            answer="json",
            query={"mailbox": mailbox, "status": status, "kind": kind, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_inbound(
        self,
        *,
        mailbox: Optional[str] = None,
        status: Optional[Literal["received", "routing", "routed", "no_match", "gone", "waiting", "dead"]] = None,
        kind: Optional[Literal["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"]] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.InboundSummary]:
        """Everything that `list_inbound` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/inbound", {"mailbox": mailbox, "status": status, "kind": kind, "limit": limit})

    def replay_inbound_all(self, body: types.InboundReplayRequest) -> types.InboundReplayed:
        """Replay inbound mail (`POST /v1/inbound/replay`).

        Settled mail that matches the filter is processed again, with all its tries and the current rules. What
        was sent because of it is not sent again. At most 1,000 mails at a time; `more` says whether to call
        again.
        """
        answered: types.InboundReplayed = self._call("POST", "/v1/inbound/replay", answer="json", body=body)
        return answered

    def get_inbound(self, id: str) -> types.Inbound:
        """Show an inbound mail (`GET /v1/inbound/{id}`).

        The mail with what it contained, what was done, and the status of the messages that were sent because of
        it.
        """
        answered: types.Inbound = self._call("GET", f"/v1/inbound/{_segment(id)}", answer="json")
        return answered

    def get_inbound_attachment(self, id: str, index: int) -> bytes:
        """Download a file of an inbound mail (`GET /v1/inbound/{id}/attachments/{index}`).

        The bytes of one attachment as they were received, as a download: the answer never opens in a browser.
        `GET /v1/inbound/{id}/content` lists the files.
        """
        answered: bytes = self._call(
            "GET",
            f"/v1/inbound/{_segment(id)}/attachments/{_segment(index)}",
            answer="bytes",
        )
        return answered

    def get_inbound_content(self, id: str) -> types.MailContent:
        """Read an inbound mail (`GET /v1/inbound/{id}/content`).

        The decoded header fields and text, and the list of attachments.
        """
        answered: types.MailContent = self._call("GET", f"/v1/inbound/{_segment(id)}/content", answer="json")
        return answered

    def preview_inbound(self, id: str) -> str:
        """Preview an inbound mail (`GET /v1/inbound/{id}/preview`).

        The html with its embedded images. It is served so that no script runs and nothing is fetched.
        """
        answered: str = self._call("GET", f"/v1/inbound/{_segment(id)}/preview", answer="text")
        return answered

    def get_raw_inbound(self, id: str) -> bytes:
        """Get the complete inbound mail (`GET /v1/inbound/{id}/raw`).

        Its bytes as the server delivered them. 404 if it could not be read, or is no longer stored.
        """
        answered: bytes = self._call("GET", f"/v1/inbound/{_segment(id)}/raw", answer="bytes")
        return answered

    def replay_inbound(self, id: str) -> types.Inbound:
        """Replay an inbound mail (`POST /v1/inbound/{id}/replay`).

        It is processed again, with all its tries and the current rules. What was sent because of it is not sent
        again. 409 while it is not settled, or if its bytes are gone.
        """
        answered: types.Inbound = self._call("POST", f"/v1/inbound/{_segment(id)}/replay", answer="json")
        return answered

    def resolve_inbound(self, id: str) -> types.Inbound:
        """Resolve an inbound mail (`POST /v1/inbound/{id}/resolve`).

        Declares that it was dealt with: there are no more reminders of it.
        """
        answered: types.Inbound = self._call("POST", f"/v1/inbound/{_segment(id)}/resolve", answer="json")
        return answered

    def list_mailboxes(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.MailboxList:
        """List mailboxes (`GET /v1/mailboxes`).

        All watched mailboxes of your tenant, without their secrets, each with the result of its last scan.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.MailboxList = self._call(
            "GET",
            "/v1/mailboxes",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_mailboxes(self, *, limit: Optional[int] = None) -> Iterator[types.Mailbox]:
        """Everything that `list_mailboxes` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/mailboxes", {"limit": limit})

    def create_mailbox(self, body: types.MailboxRequest, *, dry_run: Optional[bool] = None) -> types.Mailbox:
        """Create a mailbox (`POST /v1/mailboxes`).

        It is watched within seconds. 409 if the id is taken, or another mailbox has the same host, username and
        folder.

        `dry_run`: Only check; store nothing.
        """
        answered: types.Mailbox = self._call(
            "POST",
            "/v1/mailboxes",
            answer="json",
            query={"dry_run": dry_run},
            body=body,
        )
        return answered

    def get_mailbox(self, id: str) -> types.Mailbox:
        """Show a mailbox (`GET /v1/mailboxes/{id}`).

        With how far it was read, how far behind that is, and what is wrong with it.
        """
        answered: types.Mailbox = self._call("GET", f"/v1/mailboxes/{_segment(id)}", answer="json")
        return answered

    def change_mailbox(self, id: str, body: types.MailboxRequest) -> types.Mailbox:
        """Change a mailbox (`PATCH /v1/mailboxes/{id}`).

        Changes the given fields and leaves the others; `null` resets a setting to its default. With `version`,
        the change is made only if the mailbox still has that version; 409 otherwise. Another host, username or
        folder is another mailbox to read: it is read from its `start`. A change of host, port or proxy, and any
        reduction of TLS protection, requires the password or token again.
        """
        answered: types.Mailbox = self._call(
            "PATCH",
            f"/v1/mailboxes/{_segment(id)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_mailbox(self, id: str) -> None:
        """Delete a mailbox (`DELETE /v1/mailboxes/{id}`).

        With its rules, and everything stored about its mail. The mail on its server is not touched.
        """
        self._call("DELETE", f"/v1/mailboxes/{_segment(id)}", answer="nothing")

    def activate_mailbox(self, id: str) -> types.Mailbox:
        """Activate a mailbox (`POST /v1/mailboxes/{id}/activate`).

        Reading continues where it ended: mail that arrived meanwhile is not missed.
        """
        answered: types.Mailbox = self._call("POST", f"/v1/mailboxes/{_segment(id)}/activate", answer="json")
        return answered

    def suspend_mailbox(self, id: str) -> types.Mailbox:
        """Suspend a mailbox (`POST /v1/mailboxes/{id}/suspend`).

        Nothing new is read from it. Mail that was read before is still processed.
        """
        answered: types.Mailbox = self._call("POST", f"/v1/mailboxes/{_segment(id)}/suspend", answer="json")
        return answered

    def test_mailbox(self, id: str) -> types.MailboxTest:
        """Test a mailbox (`POST /v1/mailboxes/{id}/test`).

        Connects, secures, signs in and opens the folder. The answer is 200 even if a step fails: see `ok`.
        """
        answered: types.MailboxTest = self._call("POST", f"/v1/mailboxes/{_segment(id)}/test", answer="json")
        return answered

    def list_messages(
        self,
        *,
        q: Optional[str] = None,
        status: Optional[Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]] = None,
        outcome: Optional[Literal["delivered", "delayed", "bounced", "complained", "auto_replied", "pec_accepted", "pec_taken_over", "pec_delivered", "pec_failed", "pec_timeout"]] = None,
        held_by: Optional[str] = None,
        waiting: Optional[bool] = None,
        account: Optional[str] = None,
        batch: Optional[str] = None,
        recipient: Optional[str] = None,
        subject: Optional[str] = None,
        tag: Optional[str] = None,
        metadata: Optional[str] = None,
        request_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        error_code: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        count: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.MessageList:
        """List messages (`GET /v1/messages`).

        Newest first. A message must match every filter. Unknown parameters are refused. A page examines some
        thousands of messages at most, or the texts of about a million: as long as there is a `next_cursor`,
        continue with it, even after a page with fewer messages than requested, or none. `searched_since` then
        says how far back the search went.

        `q`: One text for every search: an address or part of one, `@domain`, an id or uid, `<Message-ID>`, a
        failure code, an `external_id`, `key=value` of the metadata, `#tag`, words of the subject, or `tag:`,
        `subject:`, `to:`, `id:`, `external:`, `metadata:`, `code:`, `status:`, `outcome:`, `account:`, `batch:`
        before a value. Quotes hold words together: `subject:"your order"`. Nothing is refused; `understood` says
        how it was interpreted. `status`: Only those in this state. `outcome`: Only those with a recipient that
        has this outcome. `held_by`: Only those that this blocks now: `any`, `tenant`, `batch:CODE`, `account:ID`,
        `limit:ID`, `circuit:ID`, or `doubt` for those that wait for your decision. `waiting`: Only those that
        wait to be sent. `account`: Only those of this account. `batch`: Only those of this batch. `recipient`:
        Only those to this address. `subject`: Only those whose subject contains this, in any case. `tag`: Only
        those with this label. `metadata`: Only those with this field in their metadata, as `key=value`.
        `request_id`: Only those that came with this request. `provider_message_id`: Only the message with this id
        of the relay. `error_code`: Only those whose latest failure has this code, such as `smtp_550`. `since`:
        Accepted at or after this time. `until`: Accepted before this time. `count`: Whether to count all matching
        messages, up to 100,000. `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the
        `next_cursor` of the previous page.
        """
        answered: types.MessageList = self._call(
            "GET",
            "/v1/messages",
            answer="json",
            query={"q": q, "status": status, "outcome": outcome, "held_by": held_by, "waiting": waiting, "account": account, "batch": batch, "recipient": recipient, "subject": subject, "tag": tag, "metadata": metadata, "request_id": request_id, "provider_message_id": provider_message_id, "error_code": error_code, "since": since, "until": until, "count": count, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_messages(
        self,
        *,
        q: Optional[str] = None,
        status: Optional[Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]] = None,
        outcome: Optional[Literal["delivered", "delayed", "bounced", "complained", "auto_replied", "pec_accepted", "pec_taken_over", "pec_delivered", "pec_failed", "pec_timeout"]] = None,
        held_by: Optional[str] = None,
        waiting: Optional[bool] = None,
        account: Optional[str] = None,
        batch: Optional[str] = None,
        recipient: Optional[str] = None,
        subject: Optional[str] = None,
        tag: Optional[str] = None,
        metadata: Optional[str] = None,
        request_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        error_code: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        count: Optional[bool] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.MessageSummary]:
        """Everything that `list_messages` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/messages", {"q": q, "status": status, "outcome": outcome, "held_by": held_by, "waiting": waiting, "account": account, "batch": batch, "recipient": recipient, "subject": subject, "tag": tag, "metadata": metadata, "request_id": request_id, "provider_message_id": provider_message_id, "error_code": error_code, "since": since, "until": until, "count": count, "limit": limit})

    def send_message(
        self,
        body: types.MessageRequest,
        *,
        dry_run: Optional[bool] = None,
        any_subject: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
        on_doubt: Optional[Literal["resend", "hold"]] = None,
    ) -> types.Receipt:
        """Send a mail (`POST /v1/messages`).

        The answer comes once the mail is durable. The same id or `Idempotency-Key` with the same body gives the
        same answer again and sends nothing twice; with another body it is 409. A ready-made mail may be sent as
        `message/rfc822`, with the query of `POST /v1/messages/raw`.

        `dry_run`: Only check; store nothing. Files are fetched, so at most four dry runs of a tenant run at once;
        others are 503. `any_subject`: Accept a subject as long as headers may be, unless the tenant has set a
        limit. `idempotency_key`: Identifies this request, so that a repeat is recognised. `on_doubt`: `resend` or
        `hold` for messages that do not set it themselves.
        """
        answered: types.Receipt = self._call(
            "POST",
            "/v1/messages",
            answer="json",
            query={"dry_run": dry_run, "any_subject": any_subject},
            headers={"Idempotency-Key": idempotency_key, "X-Postway-On-Doubt": on_doubt},
            body=body,
            keyed=True,
        )
        return answered

    def send_batch(
        self,
        body: types.BatchRequest,
        *,
        dry_run: Optional[bool] = None,
        any_subject: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
        on_doubt: Optional[Literal["resend", "hold"]] = None,
    ) -> types.BatchResult:
        """Send many mails (`POST /v1/messages/batch`).

        At most 1,000, whose composed mails have at most 64 MiB together. `defaults` supplies fields that a
        message leaves out. A refused message does not stop the others.

        `dry_run`: Only check; store nothing. `any_subject`: Accept subjects as long as headers may be, unless the
        tenant has set a limit. `idempotency_key`: Identifies this batch, so that a repeat is recognised.
        `on_doubt`: `resend` or `hold` for messages that do not set it themselves.
        """
        answered: types.BatchResult = self._call(
            "POST",
            "/v1/messages/batch",
            answer="json",
            query={"dry_run": dry_run, "any_subject": any_subject},
            headers={"Idempotency-Key": idempotency_key, "X-Postway-On-Doubt": on_doubt},
            body=body,
            keyed=True,
        )
        return answered

    def send_raw_message(
        self,
        body: bytes,
        *,
        id: Optional[str] = None,
        account: Optional[str] = None,
        from_: Optional[str] = None,
        to: Optional[List[str]] = None,
        batch: Optional[str] = None,
        priority: Optional[Literal["0", "1", "2", "3", "immediate", "high", "normal", "low"]] = None,
        send_at: Optional[str] = None,
        expires_at: Optional[str] = None,
        dsn: Optional[str] = None,
        on_doubt: Optional[Literal["resend", "hold"]] = None,
        tag: Optional[List[str]] = None,
        sensitive: Optional[bool] = None,
        dry_run: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
    ) -> types.Receipt:
        """Send a ready-made mail (`POST /v1/messages/raw`).

        The body is an RFC 5322 mail. It is sent unchanged except for the headers that every mail of Postway
        carries. Sender and recipients are those in its headers, unless the query names others.

        `id`: Your own id of the message, unique in your tenant. `account`: The account that sends it. `from`: The
        envelope sender, instead of the mail's. `to`: An envelope recipient, instead of the mail's; may be
        repeated. `batch`: The batch it belongs to. `priority`: 0 to 3, or immediate, high, normal, low.
        `send_at`: Not before this time. `expires_at`: Not after this time. `dsn`: The reports to ask relays for,
        as parameters of SMTP (RFC 3461): `NOTIFY=SUCCESS,FAILURE RET=HDRS`. `on_doubt`: `resend` or `hold` if the
        relay's final answer is lost. `tag`: A label; may be repeated. `sensitive`: Hide the content from every
        reader, and remove it once the mail is sent. `dry_run`: Only check; store nothing. `idempotency_key`:
        Identifies this request, so that a repeat is recognised.
        """
        answered: types.Receipt = self._call(
            "POST",
            "/v1/messages/raw",
            answer="json",
            query={"id": id, "account": account, "from": from_, "to": to, "batch": batch, "priority": priority, "send_at": send_at, "expires_at": expires_at, "dsn": dsn, "on_doubt": on_doubt, "tag": tag, "sensitive": sensitive, "dry_run": dry_run},
            headers={"Idempotency-Key": idempotency_key},
            body=body,
            body_type="message/rfc822",
            keyed=True,
        )
        return answered

    def get_message(self, id: str) -> types.Message:
        """Show a message (`GET /v1/messages/{id}`).

        Its status, its recipients with their outcomes, and its attempts. 404 once it was removed.
        """
        answered: types.Message = self._call("GET", f"/v1/messages/{_segment(id)}", answer="json")
        return answered

    def get_message_attachment(self, id: str, index: int) -> bytes:
        """Download a file of the mail (`GET /v1/messages/{id}/attachments/{index}`).

        The bytes of one attachment, as a download: the answer never opens in a browser. `GET
        /v1/messages/{id}/content` lists the files. 403 for a sensitive message.
        """
        answered: bytes = self._call(
            "GET",
            f"/v1/messages/{_segment(id)}/attachments/{_segment(index)}",
            answer="bytes",
        )
        return answered

    def cancel_message(self, id: str) -> types.SettledMessage:
        """Cancel a message (`POST /v1/messages/{id}/cancel`).

        Stops a message that is not being transmitted yet; 409 otherwise. If some recipients already have it, it
        stays `sent`, or `in_doubt` if they may have it, and is not sent to the others.
        """
        answered: types.SettledMessage = self._call(
            "POST",
            f"/v1/messages/{_segment(id)}/cancel",
            answer="json",
        )
        return answered

    def get_message_content(self, id: str) -> types.MailContent:
        """Read the mail (`GET /v1/messages/{id}/content`).

        The decoded header fields and text, and the list of attachments.
        """
        answered: types.MailContent = self._call("GET", f"/v1/messages/{_segment(id)}/content", answer="json")
        return answered

    def get_message_events(
        self,
        id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.EventList:
        """Show a message's history (`GET /v1/messages/{id}/events`).

        Its events, oldest first.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.EventList = self._call(
            "GET",
            f"/v1/messages/{_segment(id)}/events",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_message_events(self, id: str, *, limit: Optional[int] = None) -> Iterator[types.Event]:
        """Everything that `get_message_events` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/messages/{_segment(id)}/events", {"limit": limit})

    def explain_message(self, id: str) -> types.Explanation:
        """Explain what a message waits for (`GET /v1/messages/{id}/explain`).

        Every gate that is closed for it now: a suspension of its tenant, batch or account, a used-up limit, an
        open circuit, a busy destination, its schedule, its next retry, a doubt, an isolated node, its turn.
        """
        answered: types.Explanation = self._call("GET", f"/v1/messages/{_segment(id)}/explain", answer="json")
        return answered

    def get_message_payload(self, id: str) -> bytes:
        """Get the submitted request (`GET /v1/messages/{id}/payload`).

        The request as it was received, for as long as the message is kept: JSON, or the ready-made mail. For a
        message of a batch, the message alone. 403 for a sensitive message.
        """
        answered: bytes = self._call("GET", f"/v1/messages/{_segment(id)}/payload", answer="bytes")
        return answered

    def list_pec_receipts(
        self,
        id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.PecReceiptList:
        """List a message's receipts (`GET /v1/messages/{id}/pec`).

        Receipts of certified mail (PEC): acceptance, delivery, failure. `/pec/export` returns them as evidence.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.PecReceiptList = self._call(
            "GET",
            f"/v1/messages/{_segment(id)}/pec",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_pec_receipts(self, id: str, *, limit: Optional[int] = None) -> Iterator[types.PecReceipt]:
        """Everything that `list_pec_receipts` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/messages/{_segment(id)}/pec", {"limit": limit})

    def export_pec_receipts(self, id: str) -> bytes:
        """Export a message's receipts (`GET /v1/messages/{id}/pec/export`).

        A zip file with the mail as it was sent, each receipt as it was received, and a manifest with times,
        signatures and SHA-256 digests. 413 if they have more than 96 MiB together: `/v1/inbound/{id}/raw` returns
        each receipt by itself. 403 for a sensitive message.
        """
        answered: bytes = self._call("GET", f"/v1/messages/{_segment(id)}/pec/export", answer="bytes")
        return answered

    def preview_message(self, id: str) -> str:
        """Preview the mail (`GET /v1/messages/{id}/preview`).

        The html with its embedded images. It is served so that no script runs and nothing is fetched.
        """
        answered: str = self._call("GET", f"/v1/messages/{_segment(id)}/preview", answer="text")
        return answered

    def get_raw_message(self, id: str) -> bytes:
        """Get the complete mail (`GET /v1/messages/{id}/raw`).

        The RFC 5322 bytes as they are sent. Bcc is never among the headers. 404 while the mail is not composed
        yet, 403 for a sensitive message.
        """
        answered: bytes = self._call("GET", f"/v1/messages/{_segment(id)}/raw", answer="bytes")
        return answered

    def reschedule_message(self, id: str, body: types.RescheduleRequest) -> types.SettledMessage:
        """Reschedule a message (`POST /v1/messages/{id}/reschedule`).

        For a message that waits for its `send_at`; 409 in any other state. A time in the past means now.
        """
        answered: types.SettledMessage = self._call(
            "POST",
            f"/v1/messages/{_segment(id)}/reschedule",
            answer="json",
            body=body,
        )
        return answered

    def resolve_message(self, id: str, body: types.ResolveRequest) -> types.SettledMessage:
        """Resolve a message in doubt (`POST /v1/messages/{id}/resolve`).

        The mail was transmitted and the relay's answer was lost. Declare it `sent` or `failed`, or `resend` it.
        This applies to the recipients in doubt; the message is sent to recipients that are still open.
        """
        answered: types.SettledMessage = self._call(
            "POST",
            f"/v1/messages/{_segment(id)}/resolve",
            answer="json",
            body=body,
        )
        return answered

    def retry_message(self, id: str) -> types.SettledMessage:
        """Send a message now (`POST /v1/messages/{id}/retry`).

        Puts a failed message back in the queue with all its retries, for the recipients that failed. The files of
        an invalid message are fetched again. A message that waits for its next attempt or its `send_at` becomes
        due now. 409 in any other state.
        """
        answered: types.SettledMessage = self._call(
            "POST",
            f"/v1/messages/{_segment(id)}/retry",
            answer="json",
        )
        return answered

    def list_nodes(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.NodeList:
        """List nodes (`GET /v1/nodes`).

        For the admin key. The oldest first.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.NodeList = self._call(
            "GET",
            "/v1/nodes",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_nodes(self, *, limit: Optional[int] = None) -> Iterator[types.Node]:
        """Everything that `list_nodes` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/nodes", {"limit": limit})

    def list_outbox_sources(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.OutboxSourceList:
        """List outbox sources (`GET /v1/outbox`).

        All of them for the admin key, a tenant's own for its keys.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.OutboxSourceList = self._call(
            "GET",
            "/v1/outbox",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_outbox_sources(self, *, limit: Optional[int] = None) -> Iterator[types.OutboxSource]:
        """Everything that `list_outbox_sources` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/outbox", {"limit": limit})

    def get_overview(self) -> types.Overview:
        """Show the overview (`GET /v1/overview`).

        Rates, the queue, times in queue, failures, and what is blocked. With `Accept: text/event-stream` a new
        overview comes every two seconds.
        """
        answered: types.Overview = self._call("GET", "/v1/overview", answer="json")
        return answered

    def list_recipients(
        self,
        *,
        address: Optional[str] = None,
        external_id: Optional[str] = None,
        personal_number: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.RecipientList:
        """List recipients (`GET /v1/recipients`).

        Recipients that are not deleted. A recipient must match every filter.

        `address`: Only those with this address, in any case. `external_id`: Only the one with this id of yours.
        `personal_number`: Only the one with this personal number. `limit`: How many, 1 to 500; 50 when absent.
        `cursor`: Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.RecipientList = self._call(
            "GET",
            "/v1/recipients",
            answer="json",
            query={"address": address, "external_id": external_id, "personal_number": personal_number, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_recipients(
        self,
        *,
        address: Optional[str] = None,
        external_id: Optional[str] = None,
        personal_number: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.KnownRecipient]:
        """Everything that `list_recipients` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/recipients", {"address": address, "external_id": external_id, "personal_number": personal_number, "limit": limit})

    def create_recipient(
        self,
        body: types.RecipientRequest,
        *,
        dry_run: Optional[bool] = None,
    ) -> types.KnownRecipient:
        """Create a recipient (`POST /v1/recipients`).

        409 if the external id is taken.

        `dry_run`: Only check; store nothing.
        """
        answered: types.KnownRecipient = self._call(
            "POST",
            "/v1/recipients",
            answer="json",
            query={"dry_run": dry_run},
            body=body,
        )
        return answered

    def get_recipient(self, id: str) -> types.KnownRecipient:
        """Show a recipient (`GET /v1/recipients/{id}`).

        A deleted recipient has `deleted_at`; it is found by its id, and by yours until another one has it.
        """
        answered: types.KnownRecipient = self._call("GET", f"/v1/recipients/{_segment(id)}", answer="json")
        return answered

    def change_recipient(self, id: str, body: types.RecipientRequest) -> types.KnownRecipient:
        """Change a recipient (`PATCH /v1/recipients/{id}`).

        Changes the given fields; `null` removes external id, name, language or personal number. With `version`,
        the change is made only if the recipient still has that version; 409 otherwise.
        """
        answered: types.KnownRecipient = self._call(
            "PATCH",
            f"/v1/recipients/{_segment(id)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_recipient(self, id: str) -> None:
        """Delete a recipient (`DELETE /v1/recipients/{id}`).

        Messages that name it are refused from now on, and waiting ones are not sent. Its external id is free
        again.
        """
        self._call("DELETE", f"/v1/recipients/{_segment(id)}", answer="nothing")

    def list_routes(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.RouteList:
        """List routes (`GET /v1/routes`).

        The routes of your tenant in the order in which they apply: by position, then by id.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.RouteList = self._call(
            "GET",
            "/v1/routes",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_routes(self, *, limit: Optional[int] = None) -> Iterator[types.Route]:
        """Everything that `list_routes` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/routes", {"limit": limit})

    def create_route(self, body: types.RouteRequest) -> types.Route:
        """Create a route (`POST /v1/routes`).

        It applies to mail that is accepted from now on and names no account. 409 if the id is taken, or your
        tenant has the maximum number of routes.
        """
        answered: types.Route = self._call("POST", "/v1/routes", answer="json", body=body)
        return answered

    def order_routes(self, body: types.RouteOrderRequest) -> types.RouteList:
        """Order routes (`POST /v1/routes/order`).

        Gives the routes the positions 1, 2, … in this order. 409 if they are not all of your tenant's routes:
        read them again, because others changed them.
        """
        answered: types.RouteList = self._call("POST", "/v1/routes/order", answer="json", body=body)
        return answered

    def try_routes(self, body: types.RouteTrialRequest) -> types.RouteTrial:
        """Try the routes (`POST /v1/routes/try`).

        Returns which route a message without `account` would match, and which accounts it would choose from.
        Nothing is stored.
        """
        answered: types.RouteTrial = self._call("POST", "/v1/routes/try", answer="json", body=body)
        return answered

    def get_route(self, id: str) -> types.Route:
        """Show a route (`GET /v1/routes/{id}`).

        Its conditions, and the accounts it chooses from.
        """
        answered: types.Route = self._call("GET", f"/v1/routes/{_segment(id)}", answer="json")
        return answered

    def change_route(self, id: str, body: types.RouteRequest) -> types.Route:
        """Change a route (`PATCH /v1/routes/{id}`).

        Changes the given fields and leaves the others; `match` and `accounts` are replaced as a whole. It applies
        to mail that is accepted from now on. With `version`, the change is made only if the route still has that
        version; 409 otherwise.
        """
        answered: types.Route = self._call("PATCH", f"/v1/routes/{_segment(id)}", answer="json", body=body)
        return answered

    def delete_route(self, id: str) -> None:
        """Delete a route (`DELETE /v1/routes/{id}`).

        Its mail is then routed by the routes after it, or sent by the default account. Mail that was accepted
        before keeps its account.
        """
        self._call("DELETE", f"/v1/routes/{_segment(id)}", answer="nothing")

    def list_rules(
        self,
        *,
        mailbox: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.RuleList:
        """List rules (`GET /v1/rules`).

        In the order of evaluation, mailbox by mailbox.

        `mailbox`: Only those of this mailbox. `limit`: How many, 1 to 500; all of them when absent. `cursor`:
        Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.RuleList = self._call(
            "GET",
            "/v1/rules",
            answer="json",
            query={"mailbox": mailbox, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_rules(
        self,
        *,
        mailbox: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.Rule]:
        """Everything that `list_rules` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/rules", {"mailbox": mailbox, "limit": limit})

    def create_rule(self, body: types.RuleRequest) -> types.Rule:
        """Create a rule (`POST /v1/rules`).

        Without a `position` it is evaluated last. It applies to mail that is processed from now on.
        """
        answered: types.Rule = self._call("POST", "/v1/rules", answer="json", body=body)
        return answered

    def try_rule(self, body: types.TrialRequest) -> types.RuleTrial:
        """Test a rule (`POST /v1/rules/dry-run`).

        Returns whether its conditions match a mail, what its patterns capture, and what would be done. Nothing is
        done.
        """
        answered: types.RuleTrial = self._call("POST", "/v1/rules/dry-run", answer="json", body=body)
        return answered

    def get_rule(self, id: str) -> types.Rule:
        """Show a rule (`GET /v1/rules/{id}`).

        One rule with its conditions and actions.
        """
        answered: types.Rule = self._call("GET", f"/v1/rules/{_segment(id)}", answer="json")
        return answered

    def change_rule(self, id: str, body: types.RuleRequest) -> types.Rule:
        """Change a rule (`PATCH /v1/rules/{id}`).

        Changes the given fields and leaves the others; `match` and `actions` are replaced as lists. With
        `version`, the change is made only if the rule still has that version; 409 otherwise.
        """
        answered: types.Rule = self._call("PATCH", f"/v1/rules/{_segment(id)}", answer="json", body=body)
        return answered

    def delete_rule(self, id: str) -> None:
        """Delete a rule (`DELETE /v1/rules/{id}`).

        Its reminders end. Mail that it forwarded is not affected.
        """
        self._call("DELETE", f"/v1/rules/{_segment(id)}", answer="nothing")

    def list_scoped_suppressions(
        self,
        *,
        stream: Optional[str] = None,
        installation: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.ScopedSuppressionList:
        """List scoped suppressions (`GET /v1/scoped-suppressions`).

        Those of your tenant, or of the complete installation, without expired ones.

        `stream`: Only those of this stream. `installation`: Only those that apply to every tenant; for the admin
        key. `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.ScopedSuppressionList = self._call(
            "GET",
            "/v1/scoped-suppressions",
            answer="json",
            query={"stream": stream, "installation": installation, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_scoped_suppressions(
        self,
        *,
        stream: Optional[str] = None,
        installation: Optional[bool] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.ScopedSuppression]:
        """Everything that `list_scoped_suppressions` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/scoped-suppressions", {"stream": stream, "installation": installation, "limit": limit})

    def create_scoped_suppression(self, body: types.ScopedSuppressionRequest) -> types.ScopedSuppression:
        """Suppress a part of the mail (`POST /v1/scoped-suppressions`).

        To an address or a pattern of addresses, of one stream or of all. An existing suppression is renewed. To
        suppress all mail of your tenant to one address, use `POST /v1/suppressions`.
        """
        answered: types.ScopedSuppression = self._call(
            "POST",
            "/v1/scoped-suppressions",
            answer="json",
            body=body,
        )
        return answered

    def delete_scoped_suppression(
        self,
        pattern: str,
        *,
        stream: Optional[str] = None,
        installation: Optional[bool] = None,
    ) -> None:
        """Stop suppressing a part of the mail (`DELETE /v1/scoped-suppressions/{pattern}`).

        404 if there is no such suppression: pattern, stream and `installation` must be the same.

        `stream`: The stream, if it applies to one. `installation`: Whether it applies to every tenant; for the
        admin key.
        """
        self._call(
            "DELETE",
            f"/v1/scoped-suppressions/{_segment(pattern)}",
            answer="nothing",
            query={"stream": stream, "installation": installation},
        )

    def rotate_secrets(self) -> types.Rotation:
        """Re-encrypt stored secrets (`POST /v1/secrets/rotate`).

        For the admin key. Call this after `POSTWAY_SECRET_KEY` was changed, with the old key in
        `POSTWAY_SECRET_KEY_PREVIOUS`, on every node. Once nothing is `unreadable` or `busy`, the previous key is
        needed only for links, codes and return paths that were created under it and are still in use.
        """
        answered: types.Rotation = self._call("POST", "/v1/secrets/rotate", answer="json")
        return answered

    def get_statistics(
        self,
        *,
        by: Optional[Literal["hour", "day"]] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        account: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.Statistics:
        """Show account statistics (`GET /v1/statistics`).

        Counts by account and hour or day, including messages that were removed since. An event counts in the hour
        in which it happened.

        `by`: `hour` (default) or `day`, in UTC. `since`: From the hour or day that contains this time; when
        absent, one day back by hour, 30 days back by day. `until`: Before this time; now when absent. At most 31
        days by hour, 366 by day. `account`: Only this account. `limit`: How many, 1 to 500; all of them when
        absent. `cursor`: Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.Statistics = self._call(
            "GET",
            "/v1/statistics",
            answer="json",
            query={"by": by, "since": since, "until": until, "account": account, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_statistics(
        self,
        *,
        by: Optional[Literal["hour", "day"]] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        account: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.StatisticsRow]:
        """Everything that `get_statistics` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/statistics", {"by": by, "since": since, "until": until, "account": account, "limit": limit})

    def get_stats(self) -> types.Stats:
        """Show queue statistics (`GET /v1/stats`).

        How many messages are in each status now, the age of the oldest waiting ones, and current rates. `GET
        /v1/statistics` has the past.
        """
        answered: types.Stats = self._call("GET", "/v1/stats", answer="json")
        return answered

    def list_streams(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.StreamList:
        """List streams (`GET /v1/streams`).

        The streams of your tenant, by id.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.StreamList = self._call(
            "GET",
            "/v1/streams",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_streams(self, *, limit: Optional[int] = None) -> Iterator[types.Stream]:
        """Everything that `list_streams` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/streams", {"limit": limit})

    def create_stream(self, body: types.StreamRequest) -> types.Stream:
        """Create a stream (`POST /v1/streams`).

        409 if the id is taken, or your tenant has the maximum number of streams.
        """
        answered: types.Stream = self._call("POST", "/v1/streams", answer="json", body=body)
        return answered

    def get_stream(self, id: str) -> types.Stream:
        """Show a stream (`GET /v1/streams/{id}`).

        The stream, and whether readers can unsubscribe from it.
        """
        answered: types.Stream = self._call("GET", f"/v1/streams/{_segment(id)}", answer="json")
        return answered

    def change_stream(self, id: str, body: types.StreamRequest) -> types.Stream:
        """Change a stream (`PATCH /v1/streams/{id}`).

        Changes the given fields. With `version`, the change is made only if the stream still has that version;
        409 otherwise.
        """
        answered: types.Stream = self._call("PATCH", f"/v1/streams/{_segment(id)}", answer="json", body=body)
        return answered

    def delete_stream(self, id: str) -> None:
        """Delete a stream (`DELETE /v1/streams/{id}`).

        From then on its mail belongs to an ordinary batch of that name. Readers who unsubscribed still get no
        mail under its name.
        """
        self._call("DELETE", f"/v1/streams/{_segment(id)}", answer="nothing")

    def get_stream_statistics(
        self,
        id: str,
        *,
        by: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
    ) -> types.StreamStatistics:
        """Show stream statistics (`GET /v1/streams/{id}/statistics`).

        Counts and rates of a stream by hour or day, including messages that were removed since. An event counts
        in the hour in which it happened.

        `by`: `hour` (default) or `day`, in UTC. `since`: From the hour or day that contains this time; when
        absent, one day back by hour, 30 days back by day. `until`: Before this time; now when absent. At most 31
        days by hour, 366 by day.
        """
        answered: types.StreamStatistics = self._call(
            "GET",
            f"/v1/streams/{_segment(id)}/statistics",
            answer="json",
            query={"by": by, "since": since, "until": until},
        )
        return answered

    def list_suppressions(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.SuppressionList:
        """List suppressed addresses (`GET /v1/suppressions`).

        Addresses that get no mail of your tenant, in alphabetical order, without expired entries.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.SuppressionList = self._call(
            "GET",
            "/v1/suppressions",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_suppressions(self, *, limit: Optional[int] = None) -> Iterator[types.Suppression]:
        """Everything that `list_suppressions` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/suppressions", {"limit": limit})

    def create_suppression(self, body: types.SuppressionRequest) -> types.Suppressed:
        """Suppress addresses (`POST /v1/suppressions`).

        One as `address`, answered with its entry, or up to 1,000 as `addresses`, answered with a list. An address
        that is already suppressed is renewed.
        """
        answered: types.Suppressed = self._call("POST", "/v1/suppressions", answer="json", body=body)
        return answered

    def export_suppressions(self) -> str:
        """Export suppressed addresses (`GET /v1/suppressions/export`).

        The complete list as CSV with the columns `address,reason,note,created_at,expires_at`.
        """
        answered: str = self._call("GET", "/v1/suppressions/export", answer="text")
        return answered

    def import_suppressions(
        self,
        body: bytes,
        *,
        format: Optional[Literal["csv", "jsonl"]] = None,
    ) -> types.ImportResult:
        """Import suppressed addresses (`POST /v1/suppressions/import`).

        A file of up to 16 MiB: CSV (`text/csv`) with the columns of an export, named in the first line or else
        `address,reason,note,expires_at`, or JSON lines (`application/x-ndjson`) with an object or an address
        each. A line has at most 64 KiB, and 32 columns or 100 values. A faulty line is skipped, and the answer
        lists it by its number. `application/octet-stream` is read as CSV, unless `format` says otherwise.

        `format`: `csv` or `jsonl`, whatever the content type says.
        """
        answered: types.ImportResult = self._call(
            "POST",
            "/v1/suppressions/import",
            answer="json",
            query={"format": format},
            body=body,
            body_type="application/octet-stream",
        )
        return answered

    def get_suppression(self, address: str) -> types.Suppression:
        """Check an address (`GET /v1/suppressions/{address}`).

        200 with the entry if it is suppressed, 404 if it is not.
        """
        answered: types.Suppression = self._call(
            "GET",
            f"/v1/suppressions/{_segment(address)}",
            answer="json",
        )
        return answered

    def change_suppression(self, address: str, body: types.SuppressionChange) -> types.Suppression:
        """Change a suppression (`PATCH /v1/suppressions/{address}`).

        Changes `reason`, `note` and `expires_at` as given; `null` removes note and expiry.
        """
        answered: types.Suppression = self._call(
            "PATCH",
            f"/v1/suppressions/{_segment(address)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_suppression(self, address: str) -> None:
        """Stop suppressing an address (`DELETE /v1/suppressions/{address}`).

        Mail to it is sent again from now on. 404 if it is not on the list.
        """
        self._call("DELETE", f"/v1/suppressions/{_segment(address)}", answer="nothing")

    def list_templates(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.TemplateList:
        """List templates (`GET /v1/templates`).

        The latest version of each, without html and text.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.TemplateList = self._call(
            "GET",
            "/v1/templates",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_templates(self, *, limit: Optional[int] = None) -> Iterator[types.TemplateSummary]:
        """Everything that `list_templates` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/templates", {"limit": limit})

    def create_template(self, body: types.TemplateRequest) -> types.Template:
        """Create a template (`POST /v1/templates`).

        As version 1; 409 if the name is taken.
        """
        answered: types.Template = self._call("POST", "/v1/templates", answer="json", body=body)
        return answered

    def preview_source(self, body: types.SourcePreviewRequest) -> types.Preview:
        """Preview a template that is not stored (`POST /v1/templates/preview`).

        A template as for `POST /v1/templates`, without a required name, and `variables`. It may extend and
        include stored templates. Nothing is stored.
        """
        answered: types.Preview = self._call("POST", "/v1/templates/preview", answer="json", body=body)
        return answered

    def get_template(self, name: str, *, version: Optional[int] = None) -> types.Template:
        """Show a template (`GET /v1/templates/{name}`).

        The sources of the latest version, or of the requested one.

        `version`: The version; the latest when absent.
        """
        answered: types.Template = self._call(
            "GET",
            f"/v1/templates/{_segment(name)}",
            answer="json",
            query={"version": version},
        )
        return answered

    def put_template(self, name: str, body: types.TemplateRequest) -> types.Template:
        """Create the next version of a template (`PUT /v1/templates/{name}`).

        The first if the template does not exist. If the body equals the latest version, nothing is created and
        the answer is 200 with that version. With `version`, the change is made only if that is still the latest;
        409 otherwise.
        """
        answered: types.Template = self._call(
            "PUT",
            f"/v1/templates/{_segment(name)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_template(self, name: str) -> None:
        """Delete a template (`DELETE /v1/templates/{name}`).

        All its versions. Messages accepted with it that are not composed yet become `invalid`.
        """
        self._call("DELETE", f"/v1/templates/{_segment(name)}", answer="nothing")

    def preview_template(self, name: str, body: types.PreviewRequest) -> types.Preview:
        """Preview a template (`POST /v1/templates/{name}/preview`).

        Renders it with `variables`, or with its `sample` if none are given, in the language that a message with
        this `locale` would get. `warnings` lists why such a message would be refused; a missing variable is 422
        and named.
        """
        answered: types.Preview = self._call(
            "POST",
            f"/v1/templates/{_segment(name)}/preview",
            answer="json",
            body=body,
        )
        return answered

    def send_template_test(
        self,
        name: str,
        body: types.TemplateTestRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> types.Receipt:
        """Send a test of a template (`POST /v1/templates/{name}/test`).

        One mail to the addresses in `to` and nobody else, rendered with `variables`, or with the template's
        `sample` if none are given. Its subject begins with `[Test]`, and it has the tag `test`.

        `idempotency_key`: Identifies this request, so that a repeat is recognised.
        """
        answered: types.Receipt = self._call(
            "POST",
            f"/v1/templates/{_segment(name)}/test",
            answer="json",
            headers={"Idempotency-Key": idempotency_key},
            body=body,
            keyed=True,
        )
        return answered

    def list_template_versions(
        self,
        name: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.TemplateList:
        """List a template's versions (`GET /v1/templates/{name}/versions`).

        The latest first, without html and text. Beyond 1,000 versions the oldest are removed.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.TemplateList = self._call(
            "GET",
            f"/v1/templates/{_segment(name)}/versions",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_template_versions(
        self,
        name: str,
        *,
        limit: Optional[int] = None,
    ) -> Iterator[types.TemplateSummary]:
        """Everything that `list_template_versions` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/templates/{_segment(name)}/versions", {"limit": limit})

    def get_own_tenant(self) -> types.Tenant:
        """Show your tenant (`GET /v1/tenant`).

        The settings of the tenant that the key belongs to; an admin key names one with `X-Tenant`. Only the admin
        key changes them.
        """
        answered: types.Tenant = self._call("GET", "/v1/tenant", answer="json")
        return answered

    def list_tenants(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.TenantList:
        """List tenants (`GET /v1/tenants`).

        All tenants with their settings, without secrets. For the admin key.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.TenantList = self._call(
            "GET",
            "/v1/tenants",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_tenants(self, *, limit: Optional[int] = None) -> Iterator[types.Tenant]:
        """Everything that `list_tenants` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/tenants", {"limit": limit})

    def create_tenant(self, body: types.TenantRequest, *, dry_run: Optional[bool] = None) -> types.Tenant:
        """Create a tenant (`POST /v1/tenants`).

        It has a `sandbox` account as its default, which captures mail instead of sending it. 409 for an id that
        is or was in use.

        `dry_run`: Only check; store nothing.
        """
        answered: types.Tenant = self._call(
            "POST",
            "/v1/tenants",
            answer="json",
            query={"dry_run": dry_run},
            body=body,
        )
        return answered

    def get_tenant(self, id: str) -> types.Tenant:
        """Show a tenant (`GET /v1/tenants/{id}`).

        One tenant with its settings, without secrets. For the admin key.
        """
        answered: types.Tenant = self._call("GET", f"/v1/tenants/{_segment(id)}", answer="json")
        return answered

    def change_tenant(self, id: str, body: types.TenantRequest) -> types.Tenant:
        """Change a tenant (`PATCH /v1/tenants/{id}`).

        Merges the given fields into the tenant: `null` resets a setting to its default; a token or password that
        is not given stays. With `version`, the change is made only if the tenant still has that version; 409
        otherwise.
        """
        answered: types.Tenant = self._call("PATCH", f"/v1/tenants/{_segment(id)}", answer="json", body=body)
        return answered

    def delete_tenant(self, id: str, *, confirm: str) -> None:
        """Delete a tenant (`DELETE /v1/tenants/{id}`).

        With everything it has: mail, accounts, keys, suppressions. Confirm by repeating its id in `confirm`. It
        cannot be undone. The tenant `default` cannot be deleted.

        `confirm`: The tenant's id, repeated.
        """
        self._call("DELETE", f"/v1/tenants/{_segment(id)}", answer="nothing", query={"confirm": confirm})

    def activate_tenant(self, id: str) -> types.Tenant:
        """Activate a tenant (`POST /v1/tenants/{id}/activate`).

        Its mail is sent again.
        """
        answered: types.Tenant = self._call("POST", f"/v1/tenants/{_segment(id)}/activate", answer="json")
        return answered

    def list_keys(
        self,
        id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.KeyList:
        """List keys (`GET /v1/tenants/{id}/keys`).

        Without the keys themselves.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.KeyList = self._call(
            "GET",
            f"/v1/tenants/{_segment(id)}/keys",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_keys(self, id: str, *, limit: Optional[int] = None) -> Iterator[types.Key]:
        """Everything that `list_keys` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/tenants/{_segment(id)}/keys", {"limit": limit})

    def create_key(self, id: str, body: types.KeyRequest) -> types.NewKeyView:
        """Create a key (`POST /v1/tenants/{id}/keys`).

        The answer contains the key, which is shown only once.
        """
        answered: types.NewKeyView = self._call(
            "POST",
            f"/v1/tenants/{_segment(id)}/keys",
            answer="json",
            body=body,
        )
        return answered

    def revoke_key(self, id: str, key_id: str) -> None:
        """Revoke a key (`DELETE /v1/tenants/{id}/keys/{key_id}`).

        It stops working: here at once, on other nodes within five seconds.
        """
        self._call("DELETE", f"/v1/tenants/{_segment(id)}/keys/{_segment(key_id)}", answer="nothing")

    def suspend_tenant(self, id: str) -> types.Tenant:
        """Suspend a tenant (`POST /v1/tenants/{id}/suspend`).

        None of its mail is sent, on any node; mail is still accepted. Mail that is being transmitted is finished.
        """
        answered: types.Tenant = self._call("POST", f"/v1/tenants/{_segment(id)}/suspend", answer="json")
        return answered

    def verify_token(self, body: types.VerifyToken) -> types.VerifiedToken:
        """Verify a token (`POST /v1/tokens/verify`).

        For tokens of an outbox with accounts. The answer is 200 even if the token is not valid: see `valid`. 429
        if you ask too often.
        """
        answered: types.VerifiedToken = self._call("POST", "/v1/tokens/verify", answer="json", body=body)
        return answered

    def list_users(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> types.UserList:
        """List users (`GET /v1/users`).

        For admins: the users whose tenants are among your own, by name.

        `limit`: How many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the
        previous page.
        """
        answered: types.UserList = self._call(
            "GET",
            "/v1/users",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_users(self, *, limit: Optional[int] = None) -> Iterator[types.User]:
        """Everything that `list_users` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/users", {"limit": limit})

    def create_user(self, body: types.UserRequest) -> types.User:
        """Create a user (`POST /v1/users`).

        For admins, each for its own tenants. The user signs in at the provider, or with an invitation, which
        `POST /v1/users/{name}/invitation` makes. 409 if the name is taken.
        """
        answered: types.User = self._call("POST", "/v1/users", answer="json", body=body)
        return answered

    def get_user(self, name: str) -> types.User:
        """Show a user (`GET /v1/users/{name}`).

        For admins: role, tenants, and the ways in which the user can sign in; never a secret.
        """
        answered: types.User = self._call("GET", f"/v1/users/{_segment(name)}", answer="json")
        return answered

    def change_user(self, name: str, body: types.UserRequest) -> types.User:
        """Change a user (`PATCH /v1/users/{name}`).

        Changes the given fields: here at once, on other nodes within seconds, also for sessions that go on. With
        `version`, the change is made only if the user still has that version; 409 otherwise, and for the last
        user who may do everything. Nobody changes their own role, tenants or rights: 403.
        """
        answered: types.User = self._call("PATCH", f"/v1/users/{_segment(name)}", answer="json", body=body)
        return answered

    def delete_user(self, name: str) -> None:
        """Delete a user (`DELETE /v1/users/{name}`).

        Its sessions end: here at once, on other nodes within seconds. The audit log and the histories of messages
        keep its name. 409 for the last user who may do everything, 403 for yourself.
        """
        self._call("DELETE", f"/v1/users/{_segment(name)}", answer="nothing")

    def invite_user(self, name: str) -> types.Invitation:
        """Invite a user (`POST /v1/users/{name}/invitation`).

        For admins. Whoever has the invitation sets a new password and authenticator app for the user, and ends
        its sessions: pass it on in private. It works once and for seven days, and earlier ones stop working.
        """
        answered: types.Invitation = self._call(
            "POST",
            f"/v1/users/{_segment(name)}/invitation",
            answer="json",
        )
        return answered

    def list_user_sessions(self, name: str) -> types.UserSessionList:
        """List a user's sessions (`GET /v1/users/{name}/sessions`).

        For admins: where the user is signed in.
        """
        answered: types.UserSessionList = self._call(
            "GET",
            f"/v1/users/{_segment(name)}/sessions",
            answer="json",
        )
        return answered

    def end_user_sessions(self, name: str) -> None:
        """End a user's sessions (`DELETE /v1/users/{name}/sessions`).

        For admins: signs the user out everywhere, here at once, on other nodes within seconds.
        """
        self._call("DELETE", f"/v1/users/{_segment(name)}/sessions", answer="nothing")

    def list_webhooks(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.WebhookList:
        """List webhooks (`GET /v1/webhooks`).

        The tenant's own `client_sync` is among them, if it has one.

        `limit`: How many, 1 to 500; all of them when absent. `cursor`: Where to continue: the `next_cursor` of
        the previous page.
        """
        answered: types.WebhookList = self._call(
            "GET",
            "/v1/webhooks",
            answer="json",
            query={"limit": limit, "cursor": cursor},
        )
        return answered

    def all_webhooks(self, *, limit: Optional[int] = None) -> Iterator[types.Webhook]:
        """Everything that `list_webhooks` lists, fetched page by page; `limit` is the size of a page."""
        return self._each("/v1/webhooks", {"limit": limit})

    def create_webhook(self, body: types.WebhookRequest) -> types.WebhookWithSecret:
        """Create a webhook (`POST /v1/webhooks`).

        The secret in the answer is shown only once: it verifies that a call is ours. 409 if there are 100
        already.
        """
        answered: types.WebhookWithSecret = self._call("POST", "/v1/webhooks", answer="json", body=body)
        return answered

    def get_webhook(self, id: str) -> types.Webhook:
        """Show a webhook (`GET /v1/webhooks/{id}`).

        One webhook, without its secrets.
        """
        answered: types.Webhook = self._call("GET", f"/v1/webhooks/{_segment(id)}", answer="json")
        return answered

    def change_webhook(self, id: str, body: types.WebhookRequest) -> types.Webhook:
        """Change a webhook (`PATCH /v1/webhooks/{id}`).

        Changes the given fields and leaves the others. With `version`, the change is made only if the webhook
        still has that version; 409 otherwise. Activating it clears `disabled_reason`, and pending notifications
        are delivered.
        """
        answered: types.Webhook = self._call(
            "PATCH",
            f"/v1/webhooks/{_segment(id)}",
            answer="json",
            body=body,
        )
        return answered

    def delete_webhook(self, id: str) -> None:
        """Delete a webhook (`DELETE /v1/webhooks/{id}`).

        With its pending notifications.
        """
        self._call("DELETE", f"/v1/webhooks/{_segment(id)}", answer="nothing")

    def list_deliveries(
        self,
        id: str,
        *,
        status: Optional[Literal["pending", "calling", "waiting", "acknowledged", "dead"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.DeliveryList:
        """List a webhook's deliveries (`GET /v1/webhooks/{id}/deliveries`).

        Delivered and pending notifications, those of the newest messages first, each with its latest call.

        `status`: Only those that are `pending`, `calling`, `waiting`, `acknowledged` or `dead`. `limit`: How
        many, 1 to 500; 50 when absent. `cursor`: Where to continue: the `next_cursor` of the previous page.
        """
        answered: types.DeliveryList = self._call(
            "GET",
            f"/v1/webhooks/{_segment(id)}/deliveries",
            answer="json",
            query={"status": status, "limit": limit, "cursor": cursor},
        )
        return answered

    def all_deliveries(
        self,
        id: str,
        *,
        status: Optional[Literal["pending", "calling", "waiting", "acknowledged", "dead"]] = None,
        limit: Optional[int] = None,
    ) -> Iterator[types.Delivery]:
        """Everything that `list_deliveries` lists, fetched page by page; `limit` is the size of a page."""
        return self._each(f"/v1/webhooks/{_segment(id)}/deliveries", {"status": status, "limit": limit})

    def resend_delivery(self, id: str, uid: str, sequence: int) -> types.Delivery:
        """Repeat a delivery (`POST /v1/webhooks/{id}/deliveries/{uid}/{sequence}/resend`).

        For a notification that was acknowledged or given up. It is delivered as soon as possible, under the same
        `webhook-id`. 409 while it is still pending, and while the webhook is inactive.
        """
        answered: types.Delivery = self._call(
            "POST",
            f"/v1/webhooks/{_segment(id)}/deliveries/{_segment(uid)}/{_segment(sequence)}/resend",
            answer="json",
        )
        return answered

    def resend_deliveries(self, id: str, body: types.ResendDeliveriesRequest) -> types.ResentDeliveries:
        """Repeat missed deliveries (`POST /v1/webhooks/{id}/resend`).

        All notifications created in that time that are `dead`, or with `"which":"all"` all that are settled. They
        are delivered as soon as the webhook accepts calls, in order for each message, each under its own
        `webhook-id`. Pending ones are not changed, so a call may be repeated. A call runs for at most 20 seconds
        and then returns a `next_cursor`. 409 while the webhook is inactive.
        """
        answered: types.ResentDeliveries = self._call(
            "POST",
            f"/v1/webhooks/{_segment(id)}/resend",
            answer="json",
            body=body,
        )
        return answered

    def rotate_webhook_secret(self, id: str) -> types.WebhookWithSecret:
        """Rotate a webhook's secret (`POST /v1/webhooks/{id}/rotate`).

        Calls are signed with the new and the earlier secrets for a day, at most three at a time, so that you can
        replace it meanwhile. The new secret is shown only once.
        """
        answered: types.WebhookWithSecret = self._call(
            "POST",
            f"/v1/webhooks/{_segment(id)}/rotate",
            answer="json",
        )
        return answered

    def test_webhook(self, id: str) -> types.WebhookTest:
        """Test a webhook (`POST /v1/webhooks/{id}/test`).

        Calls it once with an event of the type `webhook.test`. The answer is 200 even if the call fails: see
        `ok`.
        """
        answered: types.WebhookTest = self._call("POST", f"/v1/webhooks/{_segment(id)}/test", answer="json")
        return answered
