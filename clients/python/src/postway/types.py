"""The bodies of requests and answers. Made by clients/make of the OpenAPI document. Do not edit."""

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Account = TypedDict(
    "Account",
    {
        "id": "str",
        "tenant": "str",
        "kind": 'Literal["smtp", "lmtp", "ses", "sendgrid", "mailgun", "postmark", "resend", "graph", "gmail", "http", "sandbox"]',
        "host": "NotRequired[Optional[str]]",
        "port": "NotRequired[Optional[int]]",
        "tls": 'Literal["starttls", "implicit", "none", "opportunistic"]',
        "username": "NotRequired[Optional[str]]",
        "password_set": "bool",
        "oauth": "NotRequired[Optional[OAuth]]",
        "allow_plaintext_auth": "bool",
        "ca_pem": "NotRequired[Optional[str]]",
        "region": "NotRequired[Optional[str]]",
        "access_key_id": "NotRequired[Optional[str]]",
        "secret_access_key_set": "bool",
        "configuration_set": "NotRequired[Optional[str]]",
        "endpoint": "NotRequired[Optional[str]]",
        "api_key_set": "bool",
        "base_url": "NotRequired[Optional[str]]",
        "domain": "NotRequired[Optional[str]]",
        "message_stream": "NotRequired[Optional[str]]",
        "max_connections": "int",
        "return_path": "NotRequired[Optional[str]]",
        "fallback": "NotRequired[Optional[str]]",
        "pec": "bool",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "proxy": "NotRequired[Optional[str]]",
        "proxy_password_set": "bool",
        "source_address": "NotRequired[Optional[str]]",
        "dsn": "NotRequired[Optional[str]]",
        "limits": "Limits",
        "warm_up": "NotRequired[Optional[WarmUp]]",
        "destinations": "Dict[str, DestinationLimit]",
        "retry": "Retry",
        "suspended": "bool",
        "circuit": "NotRequired[Optional[Circuit]]",
        "used": "NotRequired[Optional[Used]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""An account."""

AccountList = TypedDict(
    "AccountList",
    {
        "data": "List[Account]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's accounts."""

AccountRequest = TypedDict(
    "AccountRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "kind": 'NotRequired[Literal["smtp", "lmtp", "ses", "sendgrid", "mailgun", "postmark", "resend", "graph", "gmail", "http", "sandbox"]]',
        "host": "NotRequired[Optional[str]]",
        "port": "NotRequired[Optional[int]]",
        "tls": 'NotRequired[Optional[Literal["starttls", "implicit", "none", "opportunistic"]]]',
        "username": "NotRequired[Optional[str]]",
        "password": "NotRequired[Optional[str]]",
        "oauth": "NotRequired[Optional[OAuthRequest]]",
        "allow_plaintext_auth": "NotRequired[Optional[bool]]",
        "ca_pem": "NotRequired[Optional[str]]",
        "region": "NotRequired[Optional[str]]",
        "access_key_id": "NotRequired[Optional[str]]",
        "secret_access_key": "NotRequired[Optional[str]]",
        "configuration_set": "NotRequired[Optional[str]]",
        "endpoint": "NotRequired[Optional[str]]",
        "api_key": "NotRequired[Optional[str]]",
        "base_url": "NotRequired[Optional[str]]",
        "domain": "NotRequired[Optional[str]]",
        "message_stream": "NotRequired[Optional[str]]",
        "max_connections": "NotRequired[Optional[int]]",
        "return_path": "NotRequired[Optional[str]]",
        "fallback": "NotRequired[Optional[str]]",
        "pec": "NotRequired[Optional[bool]]",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "proxy": "NotRequired[Optional[str]]",
        "proxy_password": "NotRequired[Optional[str]]",
        "source_address": "NotRequired[Optional[str]]",
        "dsn": "NotRequired[Optional[str]]",
        "limits": "NotRequired[Optional[LimitsRequest]]",
        "warm_up": "NotRequired[Optional[WarmUpRequest]]",
        "destinations": "NotRequired[Optional[Dict[str, DestinationRequest]]]",
        "retry": "NotRequired[Optional[RetryRequest]]",
        "version": "NotRequired[int]",
        "tenant": "NotRequired[str]",
        "password_set": "NotRequired[bool]",
        "secret_access_key_set": "NotRequired[bool]",
        "api_key_set": "NotRequired[bool]",
        "proxy_password_set": "NotRequired[bool]",
        "suspended": "NotRequired[bool]",
        "circuit": "NotRequired[Optional[Circuit]]",
        "used": "NotRequired[Optional[Used]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""An account to create or change. Unknown fields are refused."""

AccountTest = TypedDict(
    "AccountTest",
    {
        "ok": "bool",
        "steps": "List[AccountTestStep]",
        "message": "NotRequired[Optional[str]]",
    },
)
"""The result of a test."""

AccountTestRequest = TypedDict(
    "AccountTestRequest",
    {
        "to": "NotRequired[Optional[str]]",
        "from": "NotRequired[Optional[str]]",
    },
)
"""The test mail to send."""

AccountTestStep = TypedDict(
    "AccountTestStep",
    {
        "step": 'Literal["connect", "tls", "auth", "send"]',
        "ok": "bool",
        "detail": "str",
        "duration_ms": "int",
    },
)
"""One step of a test."""

AlternativeRequest = TypedDict(
    "AlternativeRequest",
    {
        "content_type": "str",
        "content": "str",
        "attach": "NotRequired[Optional[bool]]",
    },
)
"""An alternative form of the content."""

Archive = TypedDict(
    "Archive",
    {
        "to": "NotRequired[Optional[str]]",
        "from": "NotRequired[Optional[str]]",
        "storage": "bool",
        "encrypt": "bool",
        "days": "NotRequired[Optional[int]]",
    },
)
"""Where copies of what was sent go."""

ArchiveRequest = TypedDict(
    "ArchiveRequest",
    {
        "to": "NotRequired[Optional[str]]",
        "from": "NotRequired[Optional[str]]",
        "storage": "NotRequired[Optional[bool]]",
        "encrypt": "NotRequired[Optional[bool]]",
        "days": "NotRequired[Optional[int]]",
    },
)
"""Where copies of what was sent go: an address, storage, or both."""

ArchivedCopy = TypedDict(
    "ArchivedCopy",
    {
        "id": "str",
        "object": "str",
        "size": "int",
        "sha256": "str",
        "encrypted": "bool",
        "archived_at": "str",
        "expires_at": "NotRequired[Optional[str]]",
    },
)
"""A stored copy of a sent message."""

ArchivedCopyList = TypedDict(
    "ArchivedCopyList",
    {
        "waiting": "NotRequired[Optional[int]]",
        "waiting_since": "NotRequired[Optional[str]]",
        "data": "List[ArchivedCopy]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""Stored copies."""

Attachment = TypedDict(
    "Attachment",
    {
        "filename": "str",
        "content_type": "NotRequired[Optional[str]]",
        "content": "NotRequired[Optional[str]]",
        "url": "NotRequired[Optional[str]]",
        "endpoint": "NotRequired[Optional[str]]",
        "path": "NotRequired[Optional[str]]",
        "sha256": "NotRequired[Optional[str]]",
        "content_md5": "NotRequired[Optional[str]]",
        "storage_path": "NotRequired[Optional[str]]",
        "fetch_mode": 'NotRequired[Optional[Literal["base64", "http_url", "filesystem", "endpoint"]]]',
        "content_id": "NotRequired[Optional[str]]",
        "inline": "NotRequired[Optional[bool]]",
    },
)
"""A file: its bytes, or their location (`content`, `url`, `endpoint` or `path`, or all in one as `storage_path`)."""

Attempt = TypedDict(
    "Attempt",
    {
        "smtp_code": "NotRequired[Optional[int]]",
        "enhanced_code": "NotRequired[Optional[str]]",
        "reply": "NotRequired[Optional[str]]",
        "number": "int",
        "started_at": "str",
        "duration_ms": "int",
        "account": "str",
        "remote": "NotRequired[Optional[str]]",
        "outcome": "str",
        "provider_message_id": "NotRequired[Optional[str]]",
    },
)
"""An attempt to send."""

AuditEntry = TypedDict(
    "AuditEntry",
    {
        "id": "str",
        "at": "str",
        "actor": "str",
        "tenant": "NotRequired[Optional[str]]",
        "action": "str",
        "target": "str",
        "request_id": "NotRequired[Optional[str]]",
        "detail": "NotRequired[Optional[Dict[str, Any]]]",
    },
)
"""A management call."""

AuditHead = TypedDict(
    "AuditHead",
    {
        "position": "int",
        "digest": "str",
        "trimmed": "int",
    },
)
"""Where the chain begins and ends."""

AuditLine = TypedDict(
    "AuditLine",
    {
        "position": "int",
        "id": "str",
        "at": "str",
        "actor": "str",
        "tenant": "NotRequired[Optional[str]]",
        "action": "str",
        "target": "str",
        "request_id": "NotRequired[Optional[str]]",
        "detail": "NotRequired[Optional[Dict[str, Any]]]",
        "salt": "NotRequired[Optional[str]]",
        "target_digest": "str",
        "previous": "str",
        "digest": "str",
    },
)
"""A line of the audit log, with what is digested."""

AuditLineList = TypedDict(
    "AuditLineList",
    {
        "data": "List[AuditLine]",
        "position": "int",
        "head": "AuditHead",
    },
)
"""Lines of the audit log."""

AuditList = TypedDict(
    "AuditList",
    {
        "data": "List[AuditEntry]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of the audit log."""

Batch = TypedDict(
    "Batch",
    {
        "code": "str",
        "suspended": "bool",
        "suspended_since": "NotRequired[Optional[str]]",
        "waiting": "int",
    },
)
"""A batch."""

BatchItem = TypedDict(
    "BatchItem",
    {
        "id": "NotRequired[Optional[str]]",
        "uid": "NotRequired[Optional[str]]",
        "status": "NotRequired[Optional[str]]",
        "repeated": "NotRequired[Optional[bool]]",
        "error": "NotRequired[Optional[ErrorBody]]",
    },
)
"""The result for one message of a batch: a `status`, or an `error`."""

BatchList = TypedDict(
    "BatchList",
    {
        "data": "List[Batch]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of batches."""

BatchProgress = TypedDict(
    "BatchProgress",
    {
        "code": "str",
        "suspended": "bool",
        "suspended_since": "NotRequired[Optional[str]]",
        "waiting": "int",
        "by_status": "Dict[str, Any]",
        "counted_all": "bool",
    },
)
"""A batch and its progress."""

BatchRequest = TypedDict(
    "BatchRequest",
    {
        "defaults": "NotRequired[Optional[MessageRequest]]",
        "messages": "List[MessageRequest]",
    },
)
"""Many mails at once."""

BatchResult = TypedDict(
    "BatchResult",
    {
        "accepted": "int",
        "rejected": "int",
        "results": "List[BatchItem]",
    },
)
"""The result of a batch."""

Bounce = TypedDict(
    "Bounce",
    {
        "type": 'NotRequired[Optional[Literal["hard", "soft"]]]',
        "code": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "at": "NotRequired[Optional[str]]",
        "reported_at": "NotRequired[Optional[str]]",
    },
)
"""A bounce."""

BulkAction = TypedDict(
    "BulkAction",
    {
        "id": "str",
        "state": 'Literal["running", "finished", "stopped"]',
        "action": "str",
        "outcome": "NotRequired[Optional[str]]",
        "send_at": "NotRequired[Optional[str]]",
        "note": "NotRequired[Optional[str]]",
        "filter": "NotRequired[Optional[Dict[str, Any]]]",
        "selected": "int",
        "expected": "int",
        "expected_or_more": "bool",
        "changed": "int",
        "skipped": "int",
        "actor": "str",
        "created_at": "str",
        "updated_at": "str",
        "ended_at": "NotRequired[Optional[str]]",
    },
)
"""One action on many messages, done by the server step by step."""

BulkActionList = TypedDict(
    "BulkActionList",
    {
        "data": "List[BulkAction]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of bulk actions."""

BulkActionRequest = TypedDict(
    "BulkActionRequest",
    {
        "action": 'Literal["cancel", "retry", "reschedule", "resolve", "suppress"]',
        "outcome": 'NotRequired[Optional[Literal["sent", "failed", "resend"]]]',
        "send_at": "NotRequired[Optional[str]]",
        "note": "NotRequired[Optional[str]]",
        "filter": "NotRequired[Optional[Dict[str, Any]]]",
        "ids": "NotRequired[Optional[List[str]]]",
        "at_most": "NotRequired[Optional[int]]",
    },
)
"""A bulk action to begin. Give `filter` or `ids`; unknown fields are refused."""

Call = TypedDict(
    "Call",
    {
        "at": "str",
        "latency_ms": "int",
        "status": "NotRequired[Optional[int]]",
        "request": "str",
        "answer": "str",
    },
)
"""A call."""

Circuit = TypedDict(
    "Circuit",
    {
        "state": 'Literal["closed", "open"]',
        "code": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "since": "NotRequired[Optional[str]]",
        "until": "NotRequired[Optional[str]]",
    },
)
"""An account's circuit."""

Cleanup = TypedDict(
    "Cleanup",
    {
        "deleted": "int",
        "more": "bool",
    },
)
"""The result of a clean-up."""

Contact = TypedDict(
    "Contact",
    {
        "id": "str",
        "name": "str",
        "addresses": "List[str]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A name and its addresses."""

ContactList = TypedDict(
    "ContactList",
    {
        "data": "List[Contact]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of contacts."""

ContactRequest = TypedDict(
    "ContactRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "addresses": "NotRequired[Optional[Union[str, List[str]]]]",
        "version": "NotRequired[Optional[int]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A contact to create or change. Unknown fields are refused."""

ContentLimits = TypedDict(
    "ContentLimits",
    {
        "subject_chars": "NotRequired[Optional[int]]",
        "html_bytes": "NotRequired[Optional[int]]",
        "message_bytes": "NotRequired[Optional[int]]",
        "html_required": "bool",
        "auto_text": "bool",
    },
)
"""Limits of composed mail."""

ContentRequest = TypedDict(
    "ContentRequest",
    {
        "subject_chars": "NotRequired[Optional[int]]",
        "html_bytes": "NotRequired[Optional[int]]",
        "message_bytes": "NotRequired[Optional[int]]",
        "html_required": "NotRequired[Optional[bool]]",
        "auto_text": "NotRequired[Optional[bool]]",
    },
)
"""Limits of composed mail."""

DailyQuota = TypedDict(
    "DailyQuota",
    {
        "messages": "NotRequired[Optional[int]]",
        "bytes": "NotRequired[Optional[int]]",
        "recipients": "NotRequired[Optional[int]]",
    },
)
"""How much mail a tenant may hand over in a day of UTC."""

DailyQuotaRequest = TypedDict(
    "DailyQuotaRequest",
    {
        "messages": "NotRequired[Optional[int]]",
        "bytes": "NotRequired[Optional[int]]",
        "recipients": "NotRequired[Optional[int]]",
    },
)
"""How much mail a tenant may hand over in a day of UTC."""

Delivery = TypedDict(
    "Delivery",
    {
        "message": "str",
        "id": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "sequence": "int",
        "event": "str",
        "status": 'Literal["pending", "calling", "waiting", "acknowledged", "dead"]',
        "tries": "int",
        "created_at": "str",
        "next_at": "NotRequired[Optional[str]]",
        "settled_at": "NotRequired[Optional[str]]",
        "last_call": "NotRequired[Optional[Call]]",
    },
)
"""A notification of a webhook, delivered or not."""

DeliveryList = TypedDict(
    "DeliveryList",
    {
        "data": "List[Delivery]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of a webhook's deliveries."""

DestinationLimit = TypedDict(
    "DestinationLimit",
    {
        "connections": "int",
        "per_second": "int",
    },
)
"""How much one receiving domain is sent. 0: no limit."""

DestinationRequest = TypedDict(
    "DestinationRequest",
    {
        "connections": "NotRequired[int]",
        "per_second": "NotRequired[int]",
    },
)
"""How much one receiving domain is sent. 0: no limit."""

Dialogue = TypedDict(
    "Dialogue",
    {
        "attempt": "int",
        "lines": "List[str]",
    },
)
"""What both sides said in the last attempt that failed."""

DmarcSource = TypedDict(
    "DmarcSource",
    {
        "address": "NotRequired[Optional[str]]",
        "is_known": "bool",
        "total": "int",
        "passed": "int",
        "dkim_passed": "int",
        "spf_passed": "int",
        "held_back": "int",
        "first_day": "str",
        "last_day": "str",
    },
)
"""An address that sent mail in the domain's name."""

DmarcSummary = TypedDict(
    "DmarcSummary",
    {
        "total": "int",
        "passed": "int",
        "failed": "int",
        "dkim_passed": "int",
        "spf_passed": "int",
        "quarantined": "int",
        "rejected": "int",
        "unproven": "int",
        "days": "List[DomainReportDay]",
        "sources": "List[DmarcSource]",
        "has_more_sources": "bool",
    },
)
"""What DMARC reports count."""

DnsFinding = TypedDict(
    "DnsFinding",
    {
        "check": "str",
        "state": 'Literal["ok", "absent", "warn", "unknown", "missing", "wrong"]',
        "found": "NotRequired[Optional[str]]",
        "advice": "NotRequired[Optional[str]]",
        "record": "NotRequired[Optional[DnsRecord]]",
    },
)
"""One finding about a domain."""

DnsRecord = TypedDict(
    "DnsRecord",
    {
        "name": "str",
        "type": "str",
        "value": "str",
    },
)
"""A DNS record to publish."""

Domain = TypedDict(
    "Domain",
    {
        "domain": "str",
        "domain_unicode": "NotRequired[Optional[str]]",
        "signs": "bool",
        "takes_bounces": "bool",
        "state": "str",
        "right_since": "NotRequired[Optional[str]]",
        "checked_at": "NotRequired[Optional[str]]",
        "reported_at": "NotRequired[Optional[str]]",
        "findings": "List[DnsFinding]",
    },
)
"""A domain that mail is sent from, or that bounces come back to."""

DomainList = TypedDict(
    "DomainList",
    {
        "data": "List[Domain]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's domains."""

DomainReport = TypedDict(
    "DomainReport",
    {
        "kind": 'Literal["dmarc", "tls"]',
        "organisation": "str",
        "report_id": "str",
        "sender": "NotRequired[Optional[str]]",
        "authentication": 'Literal["unknown", "passed", "failed"]',
        "began_at": "str",
        "ended_at": "str",
        "policy": "NotRequired[Optional[str]]",
        "total": "int",
        "failed": "int",
        "inbound": "str",
        "received_at": "str",
    },
)
"""A report about a domain."""

DomainReportDay = TypedDict(
    "DomainReportDay",
    {
        "day": "str",
        "passed": "int",
        "failed": "int",
    },
)
"""The messages, or sessions, of one day."""

DomainReportList = TypedDict(
    "DomainReportList",
    {
        "data": "List[DomainReport]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""Reports about a domain."""

DomainReportSummary = TypedDict(
    "DomainReportSummary",
    {
        "domain": "str",
        "since": "str",
        "dmarc": "DmarcSummary",
        "tls": "TlsSummary",
    },
)
"""What the reports about a domain sum up to."""

DomainUnsound = TypedDict(
    "DomainUnsound",
    {
        "domain": "str",
        "checks": "List[str]",
        "wrong": "bool",
    },
)
"""A domain that needs attention."""

EraseRequest = TypedDict(
    "EraseRequest",
    {
        "address": "str",
    },
)
"""The address to erase."""

Erasure = TypedDict(
    "Erasure",
    {
        "removed": "int",
        "redacted": "int",
        "waiting": "int",
        "more": "bool",
    },
)
"""The result of an erasure."""

ErrorBody = TypedDict(
    "ErrorBody",
    {
        "code": "str",
        "message": "str",
        "request_id": "NotRequired[Optional[str]]",
        "details": "List[FieldError]",
    },
)
"""What went wrong."""

Event = TypedDict(
    "Event",
    {
        "seq": "int",
        "at": "str",
        "type": "str",
        "data": "Dict[str, Any]",
    },
)
"""An event of a message's history."""

EventList = TypedDict(
    "EventList",
    {
        "data": "List[Event]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A message's history."""

Explanation = TypedDict(
    "Explanation",
    {
        "status": 'Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]',
        "reason": "NotRequired[Optional[str]]",
        "gates": "List[Gate]",
        "next_at": "NotRequired[Optional[str]]",
        "route": "NotRequired[Optional[MessageRoute]]",
        "acted": "NotRequired[Optional[OperatorAct]]",
    },
)
"""Why a message is where it is."""

Failure = TypedDict(
    "Failure",
    {
        "code": "NotRequired[Optional[str]]",
        "category": "NotRequired[Optional[str]]",
        "provider_category": "NotRequired[Optional[str]]",
        "original_code": "NotRequired[Optional[str]]",
        "phase": "NotRequired[Optional[str]]",
        "smtp_code": "NotRequired[Optional[int]]",
        "enhanced_code": "NotRequired[Optional[str]]",
        "message": "NotRequired[Optional[str]]",
    },
)
"""A failure."""

FailureReason = TypedDict(
    "FailureReason",
    {
        "code": "str",
        "count": "int",
    },
)
"""A failure code and its frequency."""

Feed = TypedDict(
    "Feed",
    {
        "data": "List[FeedEntry]",
        "next_cursor": "str",
    },
)
"""The entries that follow."""

FeedEntry = TypedDict(
    "FeedEntry",
    {
        "cursor": "str",
        "sequence": "NotRequired[Optional[int]]",
        "at": "NotRequired[Optional[str]]",
        "type": "str",
        "event": "str",
        "message": "NotRequired[Optional[NamedMessage]]",
        "inbound": "NotRequired[Optional[str]]",
        "data": "Dict[str, Any]",
    },
)
"""An event of a message."""

FieldError = TypedDict(
    "FieldError",
    {
        "field": "str",
        "message": "str",
        "code": "NotRequired[Optional[str]]",
        "check": "NotRequired[Optional[str]]",
    },
)
"""What is wrong with one field."""

FollowUpRequest = TypedDict(
    "FollowUpRequest",
    {
        "every_hours": "int",
        "times_max": "NotRequired[int]",
    },
)
"""Reminders of forwarded mail."""

Gate = TypedDict(
    "Gate",
    {
        "gate": "str",
        "reason": "str",
        "until": "NotRequired[Optional[str]]",
    },
)
"""One thing that a message waits for."""

Health = TypedDict(
    "Health",
    {
        "status": "str",
        "warnings": "NotRequired[List[str]]",
    },
)
"""The health of the server."""

ImportResult = TypedDict(
    "ImportResult",
    {
        "imported": "int",
        "rejected": "int",
        "errors": "List[WrongLine]",
    },
)
"""The result of an import."""

Inbound = TypedDict(
    "Inbound",
    {
        "id": "str",
        "mailbox": "str",
        "status": 'Literal["received", "routing", "routed", "no_match", "gone", "waiting", "dead"]',
        "kind": 'NotRequired[Optional[Literal["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"]]]',
        "from": "NotRequired[Optional[str]]",
        "to": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "message_id": "NotRequired[Optional[str]]",
        "size": "int",
        "date": "NotRequired[Optional[str]]",
        "arrived_at": "NotRequired[Optional[str]]",
        "created_at": "str",
        "settled_at": "NotRequired[Optional[str]]",
        "due_at": "NotRequired[Optional[str]]",
        "tries": "int",
        "attempts": "int",
        "error": "NotRequired[Optional[str]]",
        "tags": "List[str]",
        "follow_up": "NotRequired[Optional[str]]",
        "reminders": "int",
        "resolved_at": "NotRequired[Optional[str]]",
        "folder": "str",
        "uid_validity": "int",
        "imap_uid": "int",
        "digest": "NotRequired[Optional[str]]",
        "result": "NotRequired[Optional[Dict[str, Any]]]",
        "messages": "List[SentOn]",
        "events": "List[Event]",
    },
)
"""An inbound mail, with what it contained and what was done."""

InboundList = TypedDict(
    "InboundList",
    {
        "data": "List[InboundSummary]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of inbound mail."""

InboundReplayRequest = TypedDict(
    "InboundReplayRequest",
    {
        "status": 'Literal["no_match", "dead", "routed"]',
        "mailbox": "NotRequired[Optional[str]]",
        "kind": 'NotRequired[Optional[Literal["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"]]]',
        "since": "NotRequired[Optional[str]]",
        "until": "NotRequired[Optional[str]]",
        "settled_before": "NotRequired[Optional[str]]",
        "limit": "NotRequired[Optional[int]]",
    },
)
"""The mail to replay. A mail must match every condition. Unknown fields are refused."""

InboundReplayed = TypedDict(
    "InboundReplayed",
    {
        "replayed": "int",
        "more": "bool",
        "at": "str",
    },
)
"""The result of a replay."""

InboundSummary = TypedDict(
    "InboundSummary",
    {
        "id": "str",
        "mailbox": "str",
        "status": 'Literal["received", "routing", "routed", "no_match", "gone", "waiting", "dead"]',
        "kind": 'NotRequired[Optional[Literal["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"]]]',
        "from": "NotRequired[Optional[str]]",
        "to": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "message_id": "NotRequired[Optional[str]]",
        "size": "int",
        "date": "NotRequired[Optional[str]]",
        "arrived_at": "NotRequired[Optional[str]]",
        "created_at": "str",
        "settled_at": "NotRequired[Optional[str]]",
        "due_at": "NotRequired[Optional[str]]",
        "tries": "int",
        "attempts": "int",
        "error": "NotRequired[Optional[str]]",
        "tags": "List[str]",
        "follow_up": "NotRequired[Optional[str]]",
        "reminders": "int",
        "resolved_at": "NotRequired[Optional[str]]",
        "folder": "str",
        "uid_validity": "int",
        "imap_uid": "int",
        "digest": "NotRequired[Optional[str]]",
    },
)
"""An inbound mail, as in lists."""

Invitation = TypedDict(
    "Invitation",
    {
        "user": "str",
        "invitation": "str",
        "path": "str",
        "expires_at": "str",
    },
)
"""An invitation, shown only once."""

Key = TypedDict(
    "Key",
    {
        "id": "str",
        "prefix": "str",
        "name": "str",
        "scopes": 'List[Literal["send", "read", "manage", "read:content"]]',
        "allow_ips": "List[str]",
        "allowed_senders": "List[str]",
        "allowed_recipients": "List[str]",
        "created_by": "NotRequired[Optional[str]]",
        "created_at": "str",
        "expires_at": "NotRequired[Optional[str]]",
        "last_used_at": "NotRequired[Optional[str]]",
        "revoked_at": "NotRequired[Optional[str]]",
    },
)
"""An API key, without the key itself."""

KeyList = TypedDict(
    "KeyList",
    {
        "data": "List[Key]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's keys."""

KeyRequest = TypedDict(
    "KeyRequest",
    {
        "name": "NotRequired[Optional[str]]",
        "scopes": 'NotRequired[List[Literal["send", "read", "manage", "read:content"]]]',
        "expires_at": "NotRequired[Optional[str]]",
        "allow_ips": "NotRequired[Optional[List[str]]]",
        "allowed_senders": "NotRequired[Optional[List[str]]]",
        "allowed_recipients": "NotRequired[Optional[List[str]]]",
    },
)
"""A key to create. Unknown fields are refused."""

KnownRecipient = TypedDict(
    "KnownRecipient",
    {
        "id": "str",
        "external_id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "address": "str",
        "address_unicode": "NotRequired[Optional[str]]",
        "locale": "NotRequired[Optional[str]]",
        "personal_number": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
        "deleted_at": "NotRequired[Optional[str]]",
    },
)
"""A recipient of the directory."""

LargeFiles = TypedDict(
    "LargeFiles",
    {
        "policy": "str",
        "above_bytes": "NotRequired[Optional[int]]",
        "link_days": "NotRequired[Optional[int]]",
    },
)
"""What to do with attachments too large to mail."""

Limits = TypedDict(
    "Limits",
    {
        "per_minute": "int",
        "per_hour": "int",
        "per_day": "int",
        "behavior": 'Literal["defer", "reject"]',
    },
)
"""How much an account may send in any window of that length. 0: no limit."""

LimitsRequest = TypedDict(
    "LimitsRequest",
    {
        "per_minute": "NotRequired[Optional[int]]",
        "per_hour": "NotRequired[Optional[int]]",
        "per_day": "NotRequired[Optional[int]]",
        "behavior": 'NotRequired[Optional[Literal["defer", "reject"]]]',
    },
)
"""How much an account may send in any window of that length. 0 and null: no limit."""

MailContent = TypedDict(
    "MailContent",
    {
        "headers": "List[MailHeader]",
        "text": "NotRequired[Optional[str]]",
        "has_html": "bool",
        "attachments": "List[MailFile]",
        "omitted": "List[str]",
    },
)
"""A mail as a reader sees it."""

MailFile = TypedDict(
    "MailFile",
    {
        "index": "int",
        "filename": "NotRequired[Optional[str]]",
        "content_type": "str",
        "size": "int",
        "content_id": "NotRequired[Optional[str]]",
    },
)
"""A file in a mail."""

MailHeader = TypedDict(
    "MailHeader",
    {
        "name": "str",
        "value": "str",
    },
)
"""A header field."""

MailHolder = TypedDict(
    "MailHolder",
    {
        "held_by": "str",
        "messages": "int",
        "since": "NotRequired[Optional[str]]",
        "until": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
    },
)
"""Something that blocks mail."""

Mailbox = TypedDict(
    "Mailbox",
    {
        "id": "str",
        "tenant": "str",
        "host": "str",
        "port": "int",
        "tls": 'Literal["implicit", "starttls", "none"]',
        "ca_pem": "NotRequired[Optional[str]]",
        "username": "str",
        "auth": 'Literal["password", "xoauth2"]',
        "password_set": "bool",
        "token_set": "bool",
        "oauth": "NotRequired[Optional[OAuth]]",
        "folder": "str",
        "roles": 'List[Literal["forward", "bounces", "pec", "events", "domain_reports"]]',
        "active": "bool",
        "description": "NotRequired[Optional[str]]",
        "poll_seconds": "int",
        "start": 'Union[Literal["now", "beginning"], Dict[str, Any]]',
        "proxy": "NotRequired[Optional[str]]",
        "all_tenants": "bool",
        "attempts_max": "int",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "mail_bytes_max": "int",
        "addresses": "List[str]",
        "authserv_id": "NotRequired[Optional[str]]",
        "last_scanned_at": "NotRequired[Optional[str]]",
        "lag": "NotRequired[Optional[int]]",
        "error": "NotRequired[Optional[str]]",
        "error_since": "NotRequired[Optional[str]]",
        "uid_validity": "NotRequired[Optional[int]]",
        "last_seen_uid": "NotRequired[Optional[int]]",
        "uid_next": "NotRequired[Optional[int]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A mailbox."""

MailboxBehind = TypedDict(
    "MailboxBehind",
    {
        "mailbox": "str",
        "lag": "NotRequired[Optional[int]]",
        "error": "NotRequired[Optional[str]]",
    },
)
"""A mailbox that needs attention."""

MailboxList = TypedDict(
    "MailboxList",
    {
        "data": "List[Mailbox]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's mailboxes."""

MailboxRequest = TypedDict(
    "MailboxRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "host": "NotRequired[Optional[str]]",
        "port": "NotRequired[Optional[int]]",
        "tls": 'NotRequired[Optional[Literal["implicit", "starttls", "none"]]]',
        "ca_pem": "NotRequired[Optional[str]]",
        "username": "NotRequired[Optional[str]]",
        "password": "NotRequired[Optional[str]]",
        "token": "NotRequired[Optional[str]]",
        "oauth": "NotRequired[Optional[OAuthRequest]]",
        "auth": 'NotRequired[Optional[Literal["password", "xoauth2"]]]',
        "folder": "NotRequired[Optional[str]]",
        "roles": 'NotRequired[Optional[Union[Literal["forward", "bounces", "pec", "events", "domain_reports"], List[Literal["forward", "bounces", "pec", "events", "domain_reports"]]]]]',
        "role": 'NotRequired[Optional[Union[Literal["forward", "bounces", "pec", "events", "domain_reports"], List[Literal["forward", "bounces", "pec", "events", "domain_reports"]]]]]',
        "active": "NotRequired[Optional[bool]]",
        "description": "NotRequired[Optional[str]]",
        "poll_seconds": "NotRequired[Optional[int]]",
        "start": 'NotRequired[Optional[Union[Literal["now", "beginning"], Dict[str, Any]]]]',
        "proxy": "NotRequired[Optional[str]]",
        "proxy_password": "NotRequired[Optional[str]]",
        "all_tenants": "NotRequired[Optional[bool]]",
        "attempts_max": "NotRequired[Optional[int]]",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "mail_bytes_max": "NotRequired[Optional[int]]",
        "addresses": "NotRequired[Optional[List[str]]]",
        "authserv_id": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "tenant": "NotRequired[str]",
        "password_set": "NotRequired[bool]",
        "token_set": "NotRequired[bool]",
        "last_scanned_at": "NotRequired[Optional[str]]",
        "lag": "NotRequired[Optional[int]]",
        "error": "NotRequired[Optional[str]]",
        "error_since": "NotRequired[Optional[str]]",
        "uid_validity": "NotRequired[Optional[int]]",
        "last_seen_uid": "NotRequired[Optional[int]]",
        "uid_next": "NotRequired[Optional[int]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A mailbox to create or change. Unknown fields are refused."""

MailboxTest = TypedDict(
    "MailboxTest",
    {
        "ok": "bool",
        "steps": "List[MailboxTestStep]",
        "duration_ms": "int",
    },
)
"""The result of a mailbox test."""

MailboxTestStep = TypedDict(
    "MailboxTestStep",
    {
        "step": 'Literal["settings", "connect", "tls", "login", "folder", "mail"]',
        "ok": "bool",
        "detail": "str",
    },
)
"""One step of a mailbox test."""

Message = TypedDict(
    "Message",
    {
        "id": "str",
        "uid": "str",
        "tenant": "str",
        "account": "str",
        "status": 'Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]',
        "held_by": "List[str]",
        "priority": "int",
        "batch": "NotRequired[Optional[str]]",
        "sensitive": "bool",
        "subject": "str",
        "to": "NotRequired[Optional[str]]",
        "recipient_count": "int",
        "refused_count": "int",
        "created_at": "str",
        "updated_at": "str",
        "due_at": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
        "sent_at": "NotRequired[Optional[str]]",
        "failed_at": "NotRequired[Optional[str]]",
        "reported_at": "NotRequired[Optional[str]]",
        "attempt": "int",
        "version": "int",
        "exhausted": "bool",
        "request_id": "NotRequired[Optional[str]]",
        "message_id": "str",
        "provider_message_id": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "error": "NotRequired[Optional[Failure]]",
        "outcome": "NotRequired[Optional[str]]",
        "bounce": "NotRequired[Optional[Bounce]]",
        "on_doubt": 'Literal["resend", "hold"]',
        "external_id": "NotRequired[Optional[str]]",
        "tags": "List[str]",
        "metadata": "NotRequired[Optional[Dict[str, Any]]]",
        "recipient_id": "NotRequired[Optional[str]]",
        "payload_file_path": "NotRequired[Optional[str]]",
        "eml_file_path": "NotRequired[Optional[str]]",
        "route": "NotRequired[Optional[MessageRoute]]",
        "recipients": "List[Recipient]",
        "attempts": "List[Attempt]",
        "dialogue": "NotRequired[Optional[Dialogue]]",
        "events": "List[Event]",
        "notifications": "List[Notification]",
    },
)
"""A message with its parts."""

MessageCount = TypedDict(
    "MessageCount",
    {
        "messages": "int",
        "or_more": "bool",
    },
)
"""How many messages match."""

MessageList = TypedDict(
    "MessageList",
    {
        "data": "List[MessageSummary]",
        "next_cursor": "NotRequired[Optional[str]]",
        "searched_since": "NotRequired[Optional[str]]",
        "count": "NotRequired[Optional[MessageCount]]",
        "understood": "NotRequired[Optional[List[UnderstoodTerm]]]",
    },
)
"""A page of messages."""

MessageRequest = TypedDict(
    "MessageRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "account": "NotRequired[Optional[str]]",
        "from": "NotRequired[Optional[str]]",
        "to": "NotRequired[Optional[Union[str, List[str]]]]",
        "cc": "NotRequired[Optional[Union[str, List[str]]]]",
        "bcc": "NotRequired[Optional[Union[str, List[str]]]]",
        "reply_to": "NotRequired[Optional[Union[str, List[str]]]]",
        "return_path": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "text": "NotRequired[Optional[str]]",
        "html": "NotRequired[Optional[str]]",
        "auto_text": "NotRequired[Optional[bool]]",
        "alternatives": "NotRequired[Optional[List[AlternativeRequest]]]",
        "headers": "NotRequired[Optional[Dict[str, str]]]",
        "attachments": "NotRequired[Optional[List[Attachment]]]",
        "template": "NotRequired[Optional[TemplateUse]]",
        "locale": "NotRequired[Optional[str]]",
        "inline_css": "NotRequired[Optional[bool]]",
        "recipient": "NotRequired[Optional[RecipientUse]]",
        "unsubscribe": "NotRequired[Optional[Unsubscribe]]",
        "auto_submitted": "NotRequired[Optional[bool]]",
        "sensitive": "NotRequired[Optional[bool]]",
        "priority": 'NotRequired[Optional[Union[int, Literal["immediate", "high", "normal", "low"]]]]',
        "batch": "NotRequired[Optional[str]]",
        "stream": "NotRequired[Optional[str]]",
        "send_at": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
        "tags": "NotRequired[Optional[List[str]]]",
        "metadata": "NotRequired[Optional[Dict[str, Any]]]",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "dsn": "NotRequired[Optional[str]]",
        "collapse_key": "NotRequired[Optional[str]]",
        "external_id": "NotRequired[Optional[str]]",
        "traceparent": "NotRequired[Optional[str]]",
    },
)
"""A mail to send. Unknown fields are refused."""

MessageRoute = TypedDict(
    "MessageRoute",
    {
        "id": "NotRequired[Optional[str]]",
        "account": "NotRequired[Optional[str]]",
        "accounts": "NotRequired[int]",
        "because": 'NotRequired[List[Literal["sender_domain", "tag", "batch", "stream", "priority", "recipient_domain"]]]',
        "left_out": "NotRequired[List[str]]",
        "waits_for": 'NotRequired[Optional[Literal["suspended", "circuit", "limit"]]]',
        "passed_over": "NotRequired[List[str]]",
    },
)
"""How routes chose a message's account."""

MessageSummary = TypedDict(
    "MessageSummary",
    {
        "id": "str",
        "uid": "str",
        "tenant": "str",
        "account": "str",
        "status": 'Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]',
        "held_by": "List[str]",
        "priority": "int",
        "batch": "NotRequired[Optional[str]]",
        "sensitive": "bool",
        "subject": "str",
        "to": "NotRequired[Optional[str]]",
        "recipient_count": "int",
        "refused_count": "int",
        "created_at": "str",
        "updated_at": "str",
        "due_at": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
        "sent_at": "NotRequired[Optional[str]]",
        "failed_at": "NotRequired[Optional[str]]",
        "reported_at": "NotRequired[Optional[str]]",
        "attempt": "int",
        "version": "int",
        "exhausted": "bool",
        "request_id": "NotRequired[Optional[str]]",
        "message_id": "str",
        "provider_message_id": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "error": "NotRequired[Optional[Failure]]",
        "outcome": "NotRequired[Optional[str]]",
        "bounce": "NotRequired[Optional[Bounce]]",
        "on_doubt": 'Literal["resend", "hold"]',
        "external_id": "NotRequired[Optional[str]]",
        "tags": "List[str]",
        "metadata": "NotRequired[Optional[Dict[str, Any]]]",
    },
)
"""A message, as in lists."""

Minute = TypedDict(
    "Minute",
    {
        "at": "str",
        "accepted": "int",
        "sent": "int",
        "failed": "int",
    },
)
"""The counts of one minute."""

NamedMessage = TypedDict(
    "NamedMessage",
    {
        "id": "NotRequired[Optional[str]]",
        "uid": "str",
    },
)
"""A message by its ids."""

NewKeyView = TypedDict(
    "NewKeyView",
    {
        "id": "str",
        "prefix": "str",
        "name": "str",
        "scopes": 'List[Literal["send", "read", "manage", "read:content"]]',
        "allow_ips": "List[str]",
        "allowed_senders": "List[str]",
        "allowed_recipients": "List[str]",
        "created_by": "NotRequired[Optional[str]]",
        "created_at": "str",
        "expires_at": "NotRequired[Optional[str]]",
        "last_used_at": "NotRequired[Optional[str]]",
        "revoked_at": "NotRequired[Optional[str]]",
        "key": "str",
    },
)
"""A key that was just created."""

Node = TypedDict(
    "Node",
    {
        "id": "str",
        "name": "str",
        "address": "str",
        "version": "str",
        "status": 'Literal["alive", "dead"]',
        "is_self": "bool",
        "storage_apart": "bool",
        "started_at": "str",
        "last_beat_at": "str",
    },
)
"""A node."""

NodeList = TypedDict(
    "NodeList",
    {
        "data": "List[Node]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A list of nodes."""

Notification = TypedDict(
    "Notification",
    {
        "subscriber": "str",
        "event": "str",
        "sequence": "int",
        "status": 'Literal["pending", "calling", "waiting", "acknowledged", "dead"]',
        "tries": "int",
        "next_at": "NotRequired[Optional[str]]",
        "last_status": "NotRequired[Optional[int]]",
        "settled_at": "NotRequired[Optional[str]]",
    },
)
"""An event due to a subscriber, sent or not."""

OAuth = TypedDict(
    "OAuth",
    {
        "preset": 'NotRequired[Optional[Literal["microsoft", "google"]]]',
        "grant": 'Literal["client_credentials", "refresh_token", "service_account"]',
        "token_url": "NotRequired[Optional[str]]",
        "client_id": "str",
        "scope": "NotRequired[Optional[str]]",
        "directory": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "client_secret_set": "bool",
        "refresh_token_set": "bool",
        "private_key_set": "bool",
    },
)
"""A grant, without its secrets."""

OAuthRequest = TypedDict(
    "OAuthRequest",
    {
        "preset": 'NotRequired[Optional[Literal["microsoft", "google"]]]',
        "grant": 'NotRequired[Literal["client_credentials", "refresh_token", "service_account"]]',
        "token_url": "NotRequired[Optional[str]]",
        "client_id": "NotRequired[str]",
        "scope": "NotRequired[Optional[str]]",
        "directory": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "client_secret": "NotRequired[Optional[str]]",
        "refresh_token": "NotRequired[Optional[str]]",
        "private_key": "NotRequired[Optional[str]]",
    },
)
"""A grant to create or change. Absent fields keep their values."""

OpenCircuit = TypedDict(
    "OpenCircuit",
    {
        "account": "str",
        "code": "str",
        "reason": "str",
        "open_until": "str",
    },
)
"""An account with an open circuit."""

OperatorAct = TypedDict(
    "OperatorAct",
    {
        "actor": "NotRequired[Optional[str]]",
        "at": "str",
        "type": "str",
    },
)
"""What an operator last did to a message."""

OutboxSource = TypedDict(
    "OutboxSource",
    {
        "name": "str",
        "tenant": "str",
        "kind": "str",
        "database": "NotRequired[Optional[str]]",
        "status": "str",
        "holder": "NotRequired[Optional[str]]",
        "waiting": "NotRequired[Optional[int]]",
        "lag_seconds": "NotRequired[Optional[float]]",
        "accepted": "int",
        "invalid": "int",
        "last_taken_at": "NotRequired[Optional[str]]",
        "error": "NotRequired[Optional[str]]",
    },
)
"""An outbox source."""

OutboxSourceList = TypedDict(
    "OutboxSourceList",
    {
        "data": "List[OutboxSource]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A list of sources."""

Overview = TypedDict(
    "Overview",
    {
        "by_status": "Dict[str, Any]",
        "held": "int",
        "in_doubt_held": "int",
        "oldest_due_seconds": "int",
        "oldest_held_seconds": "int",
        "rates": "Dict[str, Any]",
        "at": "str",
        "time_in_queue": "TimeInQueue",
        "failures": "List[FailureReason]",
        "holders": "List[MailHolder]",
        "circuits": "List[OpenCircuit]",
        "domains": "List[DomainUnsound]",
        "mailboxes": "List[MailboxBehind]",
        "subscribers": "List[SubscriberBehind]",
        "quota": "NotRequired[Optional[QuotaUse]]",
        "nodes": "List[Node]",
        "last_hour": "List[Minute]",
    },
)
"""The overview of a tenant's mail."""

PecReceipt = TypedDict(
    "PecReceipt",
    {
        "kind": "str",
        "address": "NotRequired[Optional[str]]",
        "at": "str",
        "signature": 'Literal["verified", "unverified", "absent"]',
        "inbound": "str",
        "size": "int",
        "sha256": "str",
        "detail": "Dict[str, Any]",
    },
)
"""A receipt of certified mail."""

PecReceiptList = TypedDict(
    "PecReceiptList",
    {
        "data": "List[PecReceipt]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of a message's receipts."""

Preview = TypedDict(
    "Preview",
    {
        "name": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "locale": "NotRequired[Optional[str]]",
        "subject": "str",
        "html": "NotRequired[Optional[str]]",
        "text": "NotRequired[Optional[str]]",
        "warnings": "List[FieldError]",
    },
)
"""A mail as a template would render it."""

PreviewRequest = TypedDict(
    "PreviewRequest",
    {
        "variables": "NotRequired[Optional[Dict[str, Any]]]",
        "version": "NotRequired[Optional[int]]",
        "locale": "NotRequired[Optional[str]]",
    },
)
"""The values to render with. Unknown fields are refused."""

ProviderHook = TypedDict(
    "ProviderHook",
    {
        "account": "str",
        "provider": 'Literal["ses", "sendgrid", "mailgun", "postmark", "resend", "http"]',
        "topics": "List[str]",
        "sns_endpoint": "NotRequired[Optional[str]]",
        "public_key": "NotRequired[Optional[str]]",
        "username": "NotRequired[Optional[str]]",
        "secret_set": "bool",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""The hook of an account, without its token and its secret."""

ProviderHookRequest = TypedDict(
    "ProviderHookRequest",
    {
        "provider": 'NotRequired[Optional[Literal["ses", "sendgrid", "mailgun", "postmark", "resend", "http"]]]',
        "topics": "NotRequired[Optional[List[str]]]",
        "sns_endpoint": "NotRequired[Optional[str]]",
        "public_key": "NotRequired[Optional[str]]",
        "username": "NotRequired[Optional[str]]",
        "secret": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "account": "NotRequired[str]",
        "secret_set": "NotRequired[bool]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""The settings of a hook. Unknown fields are refused."""

ProviderHookWithToken = TypedDict(
    "ProviderHookWithToken",
    {
        "account": "str",
        "provider": 'Literal["ses", "sendgrid", "mailgun", "postmark", "resend", "http"]',
        "topics": "List[str]",
        "sns_endpoint": "NotRequired[Optional[str]]",
        "public_key": "NotRequired[Optional[str]]",
        "username": "NotRequired[Optional[str]]",
        "secret_set": "bool",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
        "url": "str",
        "secret": "NotRequired[Optional[str]]",
    },
)
"""A hook with what is shown only once."""

QuotaBound = TypedDict(
    "QuotaBound",
    {
        "used": "int",
        "of": "int",
    },
)
"""A bound of a daily quota."""

QuotaUse = TypedDict(
    "QuotaUse",
    {
        "messages": "NotRequired[Optional[QuotaBound]]",
        "bytes": "NotRequired[Optional[QuotaBound]]",
        "recipients": "NotRequired[Optional[QuotaBound]]",
        "warning_percent": "int",
        "renewed_at": "str",
    },
)
"""How much of a daily quota is used. What nodes have reserved for themselves counts, up to a hundredth each."""

Receipt = TypedDict(
    "Receipt",
    {
        "id": "str",
        "uid": "str",
        "status": 'Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured", "valid"]',
    },
)
"""The answer for a message that is durable."""

Recipient = TypedDict(
    "Recipient",
    {
        "smtp_code": "NotRequired[Optional[int]]",
        "enhanced_code": "NotRequired[Optional[str]]",
        "reply": "NotRequired[Optional[str]]",
        "address": "str",
        "address_unicode": "NotRequired[Optional[str]]",
        "kind": 'Literal["to", "cc", "bcc"]',
        "status": 'Literal["pending", "sent", "failed", "in_doubt", "suppressed", "cancelled", "expired", "captured"]',
        "outcome": "NotRequired[Optional[str]]",
        "bounce": "NotRequired[Optional[Bounce]]",
    },
)
"""A recipient."""

RecipientList = TypedDict(
    "RecipientList",
    {
        "data": "List[KnownRecipient]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of recipients."""

RecipientRequest = TypedDict(
    "RecipientRequest",
    {
        "external_id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "address": "NotRequired[str]",
        "email": "NotRequired[str]",
        "locale": "NotRequired[Optional[str]]",
        "personal_number": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "id": "NotRequired[str]",
        "address_unicode": "NotRequired[Optional[str]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
        "deleted_at": "NotRequired[Optional[str]]",
    },
)
"""A recipient to create or change. Unknown fields are refused."""

RecipientUse = TypedDict(
    "RecipientUse",
    {
        "id": "NotRequired[Optional[str]]",
        "external_id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "email": "NotRequired[Optional[str]]",
    },
)
"""A recipient of your directory; at least one of the ids is required."""

Remote = TypedDict(
    "Remote",
    {
        "url": "str",
        "path": "NotRequired[Optional[str]]",
        "auth": "RemoteAuth",
    },
)
"""An endpoint of the tenant's own."""

RemoteAuth = TypedDict(
    "RemoteAuth",
    {
        "type": 'Literal["none", "bearer", "basic"]',
        "username": "NotRequired[Optional[str]]",
        "has_secret": "bool",
    },
)
"""How to authenticate at an endpoint."""

RemoteAuthRequest = TypedDict(
    "RemoteAuthRequest",
    {
        "type": 'NotRequired[Optional[Literal["none", "bearer", "basic"]]]',
        "token": "NotRequired[Optional[str]]",
        "username": "NotRequired[Optional[str]]",
        "password": "NotRequired[Optional[str]]",
        "has_secret": "NotRequired[Optional[bool]]",
    },
)
"""How to authenticate at an endpoint. Secrets are encrypted at rest and never shown again."""

RemoteRequest = TypedDict(
    "RemoteRequest",
    {
        "url": "NotRequired[Optional[str]]",
        "path": "NotRequired[Optional[str]]",
        "auth": "NotRequired[Optional[RemoteAuthRequest]]",
    },
)
"""An endpoint of the tenant's own. With `PATCH`, absent fields keep their values."""

ReplayItem = TypedDict(
    "ReplayItem",
    {
        "id": "str",
        "status": "NotRequired[Optional[str]]",
        "error": "NotRequired[Optional[ErrorBody]]",
    },
)
"""The result for one message: a `status`, or an `error`."""

ReplayRequest = TypedDict(
    "ReplayRequest",
    {
        "ids": "List[str]",
    },
)
"""The messages to put back in the queue."""

ReplayResult = TypedDict(
    "ReplayResult",
    {
        "replayed": "int",
        "rejected": "int",
        "results": "List[ReplayItem]",
    },
)
"""The result of a replay."""

Reply = TypedDict(
    "Reply",
    {
        "smtp_code": "NotRequired[Optional[int]]",
        "enhanced_code": "NotRequired[Optional[str]]",
        "reply": "NotRequired[Optional[str]]",
    },
)
"""A relay's reply."""

ReportedEvent = TypedDict(
    "ReportedEvent",
    {
        "id": "str",
        "provider": 'Literal["ses", "sendgrid", "mailgun", "postmark", "resend", "http"]',
        "status": 'Literal["waiting", "leased", "applied", "ignored", "unmatched", "dead"]',
        "kind": "NotRequired[Optional[str]]",
        "message": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "tries": "int",
        "due_at": "NotRequired[Optional[str]]",
        "created_at": "str",
        "settled_at": "NotRequired[Optional[str]]",
        "event": "Dict[str, Any]",
    },
)
"""An event that a provider reported."""

ReportedEventList = TypedDict(
    "ReportedEventList",
    {
        "data": "List[ReportedEvent]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""Events that a provider reported."""

RescheduleRequest = TypedDict(
    "RescheduleRequest",
    {
        "send_at": "str",
    },
)
"""Another time for a waiting message."""

ResendDeliveriesRequest = TypedDict(
    "ResendDeliveriesRequest",
    {
        "since": "str",
        "until": "NotRequired[Optional[str]]",
        "which": 'NotRequired[Optional[Literal["dead", "all"]]]',
        "cursor": "NotRequired[Optional[str]]",
    },
)
"""The deliveries to repeat."""

ResentDeliveries = TypedDict(
    "ResentDeliveries",
    {
        "resent": "int",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""The result of repeating deliveries."""

ResolveRequest = TypedDict(
    "ResolveRequest",
    {
        "outcome": 'Literal["sent", "failed", "resend"]',
    },
)
"""An operator's decision on a message in doubt."""

Retry = TypedDict(
    "Retry",
    {
        "delays_s": "List[int]",
        "jitter": "float",
    },
)
"""Delays between attempts."""

RetryRequest = TypedDict(
    "RetryRequest",
    {
        "delays_s": "List[int]",
        "jitter": "NotRequired[float]",
    },
)
"""Delays between attempts."""

Rotation = TypedDict(
    "Rotation",
    {
        "accounts": "int",
        "tenants": "int",
        "recipients": "int",
        "dkim_keys": "int",
        "webhooks": "int",
        "mailboxes": "int",
        "hooks": "int",
        "tokens": "int",
        "users": "int",
        "unreadable": "List[str]",
        "busy": "List[str]",
    },
)
"""The result of a rotation."""

Route = TypedDict(
    "Route",
    {
        "id": "str",
        "position": "int",
        "active": "bool",
        "description": "NotRequired[Optional[str]]",
        "match": "RouteMatch",
        "accounts": "List[RouteAccount]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A rule that chooses the account of a message that names none."""

RouteAccount = TypedDict(
    "RouteAccount",
    {
        "account": "str",
        "weight": "int",
        "missing": "bool",
    },
)
"""An account of a route."""

RouteAccountRequest = TypedDict(
    "RouteAccountRequest",
    {
        "account": "str",
        "weight": "NotRequired[int]",
        "missing": "NotRequired[bool]",
    },
)
"""An account of a route."""

RouteList = TypedDict(
    "RouteList",
    {
        "data": "List[Route]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's routes."""

RouteMatch = TypedDict(
    "RouteMatch",
    {
        "sender_domains": "List[str]",
        "tags": "List[str]",
        "batches": "List[str]",
        "streams": "List[str]",
        "priorities": "List[int]",
        "recipient_domains": "List[str]",
    },
)
"""The conditions of a route. An empty list matches all mail; any other, if one of its entries does."""

RouteMatchRequest = TypedDict(
    "RouteMatchRequest",
    {
        "sender_domains": "NotRequired[Optional[List[str]]]",
        "tags": "NotRequired[Optional[List[str]]]",
        "batches": "NotRequired[Optional[List[str]]]",
        "streams": "NotRequired[Optional[List[str]]]",
        "priorities": 'NotRequired[Optional[List[Union[int, Literal["immediate", "high", "normal", "low"]]]]]',
        "recipient_domains": "NotRequired[Optional[List[str]]]",
    },
)
"""The conditions of a route. An empty or absent list matches all mail; any other, if one of its entries does."""

RouteOrderRequest = TypedDict(
    "RouteOrderRequest",
    {
        "ids": "List[str]",
    },
)
"""The routes in their new order."""

RouteRequest = TypedDict(
    "RouteRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "position": "NotRequired[int]",
        "active": "NotRequired[bool]",
        "description": "NotRequired[Optional[str]]",
        "match": "NotRequired[Optional[RouteMatchRequest]]",
        "accounts": "NotRequired[Optional[List[RouteAccountRequest]]]",
        "version": "NotRequired[int]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A route to create or change. Unknown fields are refused."""

RouteTrial = TypedDict(
    "RouteTrial",
    {
        "route": "NotRequired[Optional[str]]",
        "accounts": "List[TriedAccount]",
        "steps": "List[TriedRoute]",
    },
)
"""Which account a message would be sent by."""

RouteTrialRequest = TypedDict(
    "RouteTrialRequest",
    {
        "from": "NotRequired[Optional[str]]",
        "to": "NotRequired[Optional[Union[str, List[str]]]]",
        "tags": "NotRequired[Optional[List[str]]]",
        "batch": "NotRequired[Optional[str]]",
        "stream": "NotRequired[Optional[str]]",
        "priority": 'NotRequired[Optional[Union[int, Literal["immediate", "high", "normal", "low"]]]]',
    },
)
"""What routes compare of a message. Unknown fields are refused."""

Rule = TypedDict(
    "Rule",
    {
        "id": "str",
        "mailbox": "str",
        "position": "int",
        "active": "bool",
        "match": "List[Dict[str, Any]]",
        "actions": "List[Dict[str, Any]]",
        "follow_up": "NotRequired[Optional[Dict[str, Any]]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A rule."""

RuleList = TypedDict(
    "RuleList",
    {
        "data": "List[Rule]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's rules."""

RuleRequest = TypedDict(
    "RuleRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "mailbox": "NotRequired[Optional[str]]",
        "position": "NotRequired[Optional[int]]",
        "active": "NotRequired[Optional[bool]]",
        "match": "NotRequired[Optional[List[RuleCondition]]]",
        "actions": "NotRequired[Optional[List[RuleAction]]]",
        "follow_up": "NotRequired[Optional[FollowUpRequest]]",
        "version": "NotRequired[Optional[int]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A rule to create or change. Unknown fields are refused."""

RuleTrial = TypedDict(
    "RuleTrial",
    {
        "matched": "bool",
        "conditions": "List[TriedCondition]",
        "captures": "Dict[str, str]",
        "actions": "List[Dict[str, Any]]",
        "reason": "NotRequired[Optional[str]]",
    },
)
"""What a rule would do with a mail."""

ScopedSuppression = TypedDict(
    "ScopedSuppression",
    {
        "pattern": "str",
        "stream": "NotRequired[Optional[str]]",
        "installation": "bool",
        "reason": 'Literal["manual", "hard_bounce", "complaint", "unsubscribe"]',
        "note": "NotRequired[Optional[str]]",
        "created_at": "str",
        "expires_at": "NotRequired[Optional[str]]",
    },
)
"""A suppression of a part of the mail."""

ScopedSuppressionList = TypedDict(
    "ScopedSuppressionList",
    {
        "data": "List[ScopedSuppression]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of scoped suppressions."""

ScopedSuppressionRequest = TypedDict(
    "ScopedSuppressionRequest",
    {
        "pattern": "NotRequired[Optional[str]]",
        "stream": "NotRequired[Optional[str]]",
        "installation": "NotRequired[Optional[bool]]",
        "reason": 'NotRequired[Optional[Literal["manual", "hard_bounce", "complaint", "unsubscribe"]]]',
        "note": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
    },
)
"""The mail to suppress. Unknown fields are refused."""

SentOn = TypedDict(
    "SentOn",
    {
        "rule": "str",
        "uid": "str",
        "status": 'NotRequired[Optional[Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]]]',
    },
)
"""A message that was sent because of an inbound mail."""

SettledMessage = TypedDict(
    "SettledMessage",
    {
        "id": "NotRequired[str]",
        "uid": "str",
        "tenant": "NotRequired[str]",
        "account": "NotRequired[str]",
        "status": 'Literal["accepted", "validating", "ready", "scheduled", "sending", "sent", "failed", "invalid", "in_doubt", "suppressed", "cancelled", "expired", "captured"]',
        "held_by": "NotRequired[List[str]]",
        "priority": "NotRequired[int]",
        "batch": "NotRequired[Optional[str]]",
        "sensitive": "NotRequired[bool]",
        "subject": "NotRequired[str]",
        "to": "NotRequired[Optional[str]]",
        "recipient_count": "NotRequired[int]",
        "refused_count": "NotRequired[int]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
        "due_at": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
        "sent_at": "NotRequired[Optional[str]]",
        "failed_at": "NotRequired[Optional[str]]",
        "reported_at": "NotRequired[Optional[str]]",
        "attempt": "NotRequired[int]",
        "version": "NotRequired[int]",
        "exhausted": "NotRequired[bool]",
        "request_id": "NotRequired[Optional[str]]",
        "message_id": "NotRequired[str]",
        "provider_message_id": "NotRequired[Optional[str]]",
        "reason": "NotRequired[Optional[str]]",
        "error": "NotRequired[Optional[Failure]]",
        "outcome": "NotRequired[Optional[str]]",
        "bounce": "NotRequired[Optional[Bounce]]",
        "on_doubt": 'NotRequired[Literal["resend", "hold"]]',
        "external_id": "NotRequired[Optional[str]]",
        "tags": "NotRequired[List[str]]",
        "metadata": "NotRequired[Optional[Dict[str, Any]]]",
    },
)
"""The message after the action: complete for a key with the scope `read`, otherwise its `uid` and `status`."""

SigningKey = TypedDict(
    "SigningKey",
    {
        "domain": "str",
        "domain_unicode": "NotRequired[Optional[str]]",
        "selector": "str",
        "algorithm": 'Literal["rsa", "ed25519"]',
        "active": "bool",
        "dns_name": "str",
        "dns_record": "str",
        "created_at": "str",
    },
)
"""A signing key, without its secret half."""

SigningKeyList = TypedDict(
    "SigningKeyList",
    {
        "data": "List[SigningKey]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's signing keys."""

SigningKeyRequest = TypedDict(
    "SigningKeyRequest",
    {
        "domain": "str",
        "selector": "NotRequired[Optional[str]]",
        "algorithm": 'NotRequired[Optional[Literal["rsa", "ed25519"]]]',
    },
)
"""A signing key to create. Unknown fields are refused."""

SourcePreviewRequest = TypedDict(
    "SourcePreviewRequest",
    {
        "name": "NotRequired[Optional[str]]",
        "locale": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "html": "NotRequired[Optional[str]]",
        "text": "NotRequired[Optional[str]]",
        "mjml": "NotRequired[Optional[str]]",
        "layout": "NotRequired[Optional[str]]",
        "inline_css": "NotRequired[Optional[bool]]",
        "description": "NotRequired[Optional[str]]",
        "sample": "NotRequired[Optional[Dict[str, Any]]]",
        "variables": "NotRequired[Optional[Dict[str, Any]]]",
    },
)
"""A template that is not stored, as for `POST /v1/templates`, and the values to render with. Unknown fields are refused."""

Statistics = TypedDict(
    "Statistics",
    {
        "data": "List[StatisticsRow]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""What a tenant's accounts did."""

StatisticsRow = TypedDict(
    "StatisticsRow",
    {
        "at": "str",
        "account": "str",
        "accepted": "int",
        "sent": "int",
        "failed": "int",
        "invalid": "int",
        "deferred": "int",
        "bounced": "int",
        "complained": "int",
        "suppressed": "int",
        "average_queue_ms": "NotRequired[Optional[int]]",
    },
)
"""What one account did in one period."""

Stats = TypedDict(
    "Stats",
    {
        "by_status": "Dict[str, Any]",
        "held": "int",
        "in_doubt_held": "int",
        "oldest_due_seconds": "int",
        "oldest_held_seconds": "int",
        "rates": "Dict[str, Any]",
    },
)
"""Counts of a tenant's messages."""

Stream = TypedDict(
    "Stream",
    {
        "id": "str",
        "name": "str",
        "description": "NotRequired[Optional[str]]",
        "unsubscribe": "bool",
        "unsubscribe_mailto": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A named kind of mail."""

StreamList = TypedDict(
    "StreamList",
    {
        "data": "List[Stream]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of streams."""

StreamRequest = TypedDict(
    "StreamRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "description": "NotRequired[Optional[str]]",
        "unsubscribe": "NotRequired[Optional[bool]]",
        "unsubscribe_mailto": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A stream to create or change. Unknown fields are refused."""

StreamStatistics = TypedDict(
    "StreamStatistics",
    {
        "total": "StreamStatisticsRow",
        "data": "List[StreamStatisticsRow]",
    },
)
"""The counts of a stream's mail, and the rates."""

StreamStatisticsRow = TypedDict(
    "StreamStatisticsRow",
    {
        "at": "NotRequired[Optional[str]]",
        "accepted": "int",
        "sent": "int",
        "failed": "int",
        "suppressed": "int",
        "delivered": "int",
        "bounced": "int",
        "complained": "int",
        "unsubscribed": "int",
        "resubscribed": "int",
        "complaint_rate": "NotRequired[Optional[float]]",
        "bounce_rate": "NotRequired[Optional[float]]",
        "unsubscribe_rate": "NotRequired[Optional[float]]",
    },
)
"""The counts of a stream's mail in one period, or in all of them."""

SubscriberBehind = TypedDict(
    "SubscriberBehind",
    {
        "id": "str",
        "url": "str",
        "due": "bool",
        "disabled_reason": "NotRequired[Optional[str]]",
    },
)
"""A webhook that needs attention."""

Suppression = TypedDict(
    "Suppression",
    {
        "address": "str",
        "address_unicode": "NotRequired[Optional[str]]",
        "reason": 'Literal["manual", "hard_bounce", "complaint", "unsubscribe"]',
        "note": "NotRequired[Optional[str]]",
        "created_at": "str",
        "expires_at": "NotRequired[Optional[str]]",
    },
)
"""An address that gets no mail."""

SuppressionChange = TypedDict(
    "SuppressionChange",
    {
        "reason": 'NotRequired[Optional[Literal["manual", "hard_bounce", "complaint", "unsubscribe"]]]',
        "note": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
        "address": "NotRequired[str]",
        "address_unicode": "NotRequired[Optional[str]]",
        "created_at": "NotRequired[str]",
    },
)
"""The fields of a suppression to change. Unknown fields are refused."""

SuppressionList = TypedDict(
    "SuppressionList",
    {
        "data": "List[Suppression]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of suppressed addresses."""

SuppressionRequest = TypedDict(
    "SuppressionRequest",
    {
        "address": "NotRequired[Optional[str]]",
        "addresses": "NotRequired[Optional[List[str]]]",
        "reason": 'NotRequired[Optional[Literal["manual", "hard_bounce", "complaint", "unsubscribe"]]]',
        "note": "NotRequired[Optional[str]]",
        "expires_at": "NotRequired[Optional[str]]",
    },
)
"""Addresses to suppress: one, or several that share the other fields. Unknown fields are refused."""

Template = TypedDict(
    "Template",
    {
        "name": "str",
        "locale": "NotRequired[Optional[str]]",
        "version": "int",
        "subject": "str",
        "html": "NotRequired[Optional[str]]",
        "text": "NotRequired[Optional[str]]",
        "mjml": "NotRequired[Optional[str]]",
        "layout": "NotRequired[Optional[str]]",
        "inline_css": "bool",
        "description": "NotRequired[Optional[str]]",
        "sample": "NotRequired[Optional[Dict[str, Any]]]",
        "created_at": "str",
    },
)
"""A template in one of its versions."""

TemplateList = TypedDict(
    "TemplateList",
    {
        "data": "List[TemplateSummary]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of templates, or of the versions of one."""

TemplateRequest = TypedDict(
    "TemplateRequest",
    {
        "name": "NotRequired[Optional[str]]",
        "locale": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "html": "NotRequired[Optional[str]]",
        "text": "NotRequired[Optional[str]]",
        "mjml": "NotRequired[Optional[str]]",
        "layout": "NotRequired[Optional[str]]",
        "inline_css": "NotRequired[Optional[bool]]",
        "description": "NotRequired[Optional[str]]",
        "sample": "NotRequired[Optional[Dict[str, Any]]]",
        "version": "NotRequired[Optional[int]]",
        "created_at": "NotRequired[str]",
    },
)
"""A template to create. Unknown fields are refused; all sources together have at most 1 MiB."""

TemplateSummary = TypedDict(
    "TemplateSummary",
    {
        "name": "str",
        "locale": "NotRequired[Optional[str]]",
        "version": "int",
        "subject": "str",
        "parts": "List[str]",
        "layout": "NotRequired[Optional[str]]",
        "description": "NotRequired[Optional[str]]",
        "created_at": "str",
    },
)
"""A template without its sources."""

TemplateTestRequest = TypedDict(
    "TemplateTestRequest",
    {
        "to": "List[str]",
        "from": "NotRequired[Optional[str]]",
        "account": "NotRequired[Optional[str]]",
        "variables": "NotRequired[Optional[Dict[str, Any]]]",
        "version": "NotRequired[Optional[int]]",
        "locale": "NotRequired[Optional[str]]",
    },
)
"""Where a test of a template goes. Unknown fields are refused."""

TemplateUse = TypedDict(
    "TemplateUse",
    {
        "name": "str",
        "version": "NotRequired[Optional[int]]",
        "variables": "NotRequired[Optional[Dict[str, Any]]]",
    },
)
"""A template to fill in."""

Tenant = TypedDict(
    "Tenant",
    {
        "id": "str",
        "name": "str",
        "suspended": "bool",
        "suspended_since": "NotRequired[Optional[str]]",
        "default_account": "NotRequired[Optional[str]]",
        "weight": "int",
        "content": "ContentLimits",
        "retention_days": "NotRequired[Optional[int]]",
        "report_retention_seconds": "NotRequired[Optional[int]]",
        "unreported_retention_days": "NotRequired[Optional[int]]",
        "client_sync": "NotRequired[Optional[Remote]]",
        "attachment_endpoint": "NotRequired[Optional[Remote]]",
        "callback_form": 'Literal["event", "outbox", "batch"]',
        "large_files": "LargeFiles",
        "bounce_domain": "NotRequired[Optional[str]]",
        "return_path": "NotRequired[Optional[str]]",
        "default_from": "NotRequired[Optional[str]]",
        "feedback_id": "NotRequired[Optional[str]]",
        "auto_submitted": "bool",
        "test": "bool",
        "id_header": "NotRequired[Optional[str]]",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "allowed_senders": "List[str]",
        "bind_reply_to": "bool",
        "virus_policy": 'Literal["open", "closed", "off"]',
        "daily_quota": "DailyQuota",
        "guard_content": "bool",
        "archive": "NotRequired[Optional[Archive]]",
        "locale": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A tenant."""

TenantList = TypedDict(
    "TenantList",
    {
        "data": "List[Tenant]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of tenants."""

TenantRequest = TypedDict(
    "TenantRequest",
    {
        "id": "NotRequired[Optional[str]]",
        "name": "NotRequired[Optional[str]]",
        "weight": "NotRequired[Optional[int]]",
        "default_account": "NotRequired[Optional[str]]",
        "content": "NotRequired[Optional[ContentRequest]]",
        "retention_days": "NotRequired[Optional[int]]",
        "report_retention_seconds": "NotRequired[Optional[int]]",
        "unreported_retention_days": "NotRequired[Optional[int]]",
        "client_sync": "NotRequired[Optional[RemoteRequest]]",
        "attachment_endpoint": "NotRequired[Optional[RemoteRequest]]",
        "callback_form": 'NotRequired[Optional[Literal["event", "outbox", "batch"]]]',
        "large_files": 'NotRequired[Optional[Union[Literal["reject", "warn", "rewrite", "link"], Dict[str, Any]]]]',
        "bounce_domain": "NotRequired[Optional[str]]",
        "return_path": "NotRequired[Optional[str]]",
        "default_from": "NotRequired[Optional[str]]",
        "feedback_id": "NotRequired[Optional[str]]",
        "auto_submitted": "NotRequired[Optional[bool]]",
        "test": "NotRequired[Optional[bool]]",
        "id_header": "NotRequired[Optional[str]]",
        "on_doubt": 'NotRequired[Optional[Literal["resend", "hold"]]]',
        "allowed_senders": "NotRequired[Optional[List[str]]]",
        "bind_reply_to": "NotRequired[Optional[bool]]",
        "virus_policy": 'NotRequired[Optional[Literal["open", "closed", "off"]]]',
        "daily_quota": "NotRequired[Optional[DailyQuotaRequest]]",
        "guard_content": "NotRequired[Optional[bool]]",
        "archive": "NotRequired[Optional[ArchiveRequest]]",
        "locale": "NotRequired[Optional[str]]",
        "version": "NotRequired[Optional[int]]",
        "suspended": "NotRequired[bool]",
        "suspended_since": "NotRequired[Optional[str]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A tenant to create or change. Unknown fields are refused."""

TimeInQueue = TypedDict(
    "TimeInQueue",
    {
        "p50_ms": "NotRequired[Optional[int]]",
        "p95_ms": "NotRequired[Optional[int]]",
        "sample": "int",
    },
)
"""Percentiles."""

TlsFailure = TypedDict(
    "TlsFailure",
    {
        "type": 'Literal["starttls-not-supported", "certificate-host-mismatch", "certificate-expired", "certificate-not-trusted", "validation-failure", "tlsa-invalid", "dnssec-invalid", "dane-required", "sts-policy-fetch-error", "sts-policy-invalid", "sts-webpki-invalid", "other"]',
        "server": "NotRequired[Optional[str]]",
        "total": "int",
        "first_day": "str",
        "last_day": "str",
    },
)
"""Sessions that failed in one way."""

TlsSummary = TypedDict(
    "TlsSummary",
    {
        "total": "int",
        "failed": "int",
        "days": "List[DomainReportDay]",
        "failures": "List[TlsFailure]",
    },
)
"""What TLS reports count."""

TrialRequest = TypedDict(
    "TrialRequest",
    {
        "rule": "NotRequired[Optional[RuleRequest]]",
        "id": "NotRequired[Optional[str]]",
        "inbound": "NotRequired[Optional[str]]",
        "raw": "NotRequired[Optional[str]]",
    },
)
"""A rule, and a mail to test it with. Unknown fields are refused."""

TriedAccount = TypedDict(
    "TriedAccount",
    {
        "account": "str",
        "weight": "int",
        "held_by": 'NotRequired[Optional[Literal["suspended", "circuit", "limit"]]]',
    },
)
"""An account that may be chosen."""

TriedCondition = TypedDict(
    "TriedCondition",
    {
        "holds": "bool",
        "why": "str",
    },
)
"""The result of one condition."""

TriedRoute = TypedDict(
    "TriedRoute",
    {
        "route": "str",
        "matched": "bool",
        "conditions": "List[TriedRouteCondition]",
        "missing": "List[str]",
        "passed_over": "bool",
    },
)
"""One route, compared with the message."""

TriedRouteCondition = TypedDict(
    "TriedRouteCondition",
    {
        "condition": 'Literal["sender_domain", "tag", "batch", "stream", "priority", "recipient_domain"]',
        "holds": "bool",
    },
)
"""One condition of a route."""

UnderstoodTerm = TypedDict(
    "UnderstoodTerm",
    {
        "name": "str",
        "value": "str",
    },
)
"""A part of a search, as it was interpreted."""

Unsubscribe = TypedDict(
    "Unsubscribe",
    {
        "url": "NotRequired[Optional[str]]",
        "mailto": "NotRequired[Optional[str]]",
    },
)
"""How a reader unsubscribes: either or both."""

Used = TypedDict(
    "Used",
    {
        "minute": "NotRequired[Optional[int]]",
        "hour": "NotRequired[Optional[int]]",
        "day": "NotRequired[Optional[int]]",
    },
)
"""What counts against the limits now; null if there is no such limit."""

User = TypedDict(
    "User",
    {
        "name": "str",
        "display_name": "str",
        "email": "NotRequired[Optional[str]]",
        "role": 'Literal["viewer", "operator", "manager", "admin"]',
        "tenants": "NotRequired[Optional[List[str]]]",
        "read_content": "bool",
        "issuer": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "has_password": "bool",
        "recovery_codes": "int",
        "passkeys": "int",
        "disabled_at": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A person who operates the gateway."""

UserList = TypedDict(
    "UserList",
    {
        "data": "List[User]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A page of users."""

UserRequest = TypedDict(
    "UserRequest",
    {
        "name": "NotRequired[Optional[str]]",
        "display_name": "NotRequired[Optional[str]]",
        "email": "NotRequired[Optional[str]]",
        "role": 'NotRequired[Literal["viewer", "operator", "manager", "admin"]]',
        "tenants": "NotRequired[Optional[List[str]]]",
        "read_content": "NotRequired[Optional[bool]]",
        "disabled": "NotRequired[Optional[bool]]",
        "version": "NotRequired[Optional[int]]",
        "issuer": "NotRequired[Optional[str]]",
        "subject": "NotRequired[Optional[str]]",
        "has_password": "NotRequired[bool]",
        "recovery_codes": "NotRequired[int]",
        "passkeys": "NotRequired[int]",
        "disabled_at": "NotRequired[Optional[str]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A user to create or change. Unknown fields are refused."""

UserSession = TypedDict(
    "UserSession",
    {
        "id": "str",
        "began_at": "str",
        "ends_at": "str",
        "seen_at": "str",
        "way": "str",
        "address": "NotRequired[Optional[str]]",
        "agent": "NotRequired[Optional[str]]",
        "current": "bool",
    },
)
"""A browser in which a user is signed in."""

UserSessionList = TypedDict(
    "UserSessionList",
    {
        "data": "List[UserSession]",
    },
)
"""The sessions of a user."""

VerifiedToken = TypedDict(
    "VerifiedToken",
    {
        "valid": "bool",
        "reason": "NotRequired[Optional[str]]",
        "action": "NotRequired[Optional[str]]",
        "account": "NotRequired[Optional[int]]",
        "login": "NotRequired[Optional[str]]",
        "consumed": "NotRequired[Optional[bool]]",
    },
)
"""The result of a verification."""

VerifyToken = TypedDict(
    "VerifyToken",
    {
        "token": "str",
        "path": "str",
        "code": "NotRequired[Optional[str]]",
        "consume": "NotRequired[Optional[bool]]",
    },
)
"""The token to verify."""

WarmUp = TypedDict(
    "WarmUp",
    {
        "from": "str",
        "per_day": "List[int]",
    },
)
"""A daily limit that grows."""

WarmUpRequest = TypedDict(
    "WarmUpRequest",
    {
        "from": "NotRequired[Optional[str]]",
        "per_day": "List[int]",
    },
)
"""A daily limit that grows."""

Webhook = TypedDict(
    "Webhook",
    {
        "id": "str",
        "kind": 'Literal["webhook", "callback", "sync"]',
        "url": "NotRequired[Optional[str]]",
        "form": "NotRequired[Optional[str]]",
        "events": 'List[Literal["email.accepted", "email.invalid", "email.deferred", "email.sent", "email.failed", "email.recipient_failed", "email.in_doubt", "email.resent", "email.resolved", "email.cancelled", "email.expired", "email.suppressed", "email.replayed", "email.delivered", "email.delayed", "email.bounced", "email.complained", "email.auto_replied", "email.pec.accepted", "email.pec.taken_over", "email.pec.delivered", "email.pec.failed", "email.pec.timeout", "email.received", "email.unproven_report", "email.captured", "email.unsubscribed", "email.resubscribed", "email.replied", "email.opened", "email.clicked", "suppression.created", "suppression.deleted", "*"]]',
        "description": "NotRequired[Optional[str]]",
        "active": "bool",
        "disabled_reason": "NotRequired[Optional[str]]",
        "quiet_until": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
    },
)
"""A webhook."""

WebhookList = TypedDict(
    "WebhookList",
    {
        "data": "List[Webhook]",
        "next_cursor": "NotRequired[Optional[str]]",
    },
)
"""A tenant's webhooks."""

WebhookRequest = TypedDict(
    "WebhookRequest",
    {
        "url": "NotRequired[Optional[str]]",
        "events": 'NotRequired[Optional[List[Literal["email.accepted", "email.invalid", "email.deferred", "email.sent", "email.failed", "email.recipient_failed", "email.in_doubt", "email.resent", "email.resolved", "email.cancelled", "email.expired", "email.suppressed", "email.replayed", "email.delivered", "email.delayed", "email.bounced", "email.complained", "email.auto_replied", "email.pec.accepted", "email.pec.taken_over", "email.pec.delivered", "email.pec.failed", "email.pec.timeout", "email.received", "email.unproven_report", "email.captured", "email.unsubscribed", "email.resubscribed", "email.replied", "email.opened", "email.clicked", "suppression.created", "suppression.deleted", "*"]]]]',
        "form": "NotRequired[Optional[str]]",
        "description": "NotRequired[Optional[str]]",
        "active": "NotRequired[Optional[bool]]",
        "version": "NotRequired[Optional[int]]",
        "id": "NotRequired[str]",
        "kind": "NotRequired[str]",
        "disabled_reason": "NotRequired[Optional[str]]",
        "quiet_until": "NotRequired[Optional[str]]",
        "created_at": "NotRequired[str]",
        "updated_at": "NotRequired[str]",
    },
)
"""A webhook to create or change. Unknown fields are refused."""

WebhookTest = TypedDict(
    "WebhookTest",
    {
        "ok": "bool",
        "status": "NotRequired[Optional[int]]",
        "latency_ms": "int",
        "answer": "str",
    },
)
"""The result of a test call."""

WebhookWithSecret = TypedDict(
    "WebhookWithSecret",
    {
        "id": "str",
        "kind": 'Literal["webhook", "callback", "sync"]',
        "url": "NotRequired[Optional[str]]",
        "form": "NotRequired[Optional[str]]",
        "events": 'List[Literal["email.accepted", "email.invalid", "email.deferred", "email.sent", "email.failed", "email.recipient_failed", "email.in_doubt", "email.resent", "email.resolved", "email.cancelled", "email.expired", "email.suppressed", "email.replayed", "email.delivered", "email.delayed", "email.bounced", "email.complained", "email.auto_replied", "email.pec.accepted", "email.pec.taken_over", "email.pec.delivered", "email.pec.failed", "email.pec.timeout", "email.received", "email.unproven_report", "email.captured", "email.unsubscribed", "email.resubscribed", "email.replied", "email.opened", "email.clicked", "suppression.created", "suppression.deleted", "*"]]',
        "description": "NotRequired[Optional[str]]",
        "active": "bool",
        "disabled_reason": "NotRequired[Optional[str]]",
        "quiet_until": "NotRequired[Optional[str]]",
        "version": "int",
        "created_at": "str",
        "updated_at": "str",
        "secret": "str",
    },
)
"""A webhook with a secret that was just generated."""

WrongLine = TypedDict(
    "WrongLine",
    {
        "line": "int",
        "message": "str",
    },
)
"""A skipped line."""

RuleAction = Dict[str, Any]
""""""

RuleCondition = Dict[str, Any]
""""""

Suppressed = Union[Suppression, SuppressionList]
"""The answer: the one entry for `address`, or the entries for `addresses`."""
