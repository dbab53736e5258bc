use super::*;

const ENVELOPE: MailEnvelope<'_> = MailEnvelope {
    sender: "shop@example.net",
    recipients: &["ann@example.org", "bob@example.org"],
    size: 1,
    eight_bit: false,
    smtputf8: false,
    dsn: None,
    trace: None,
};

fn answer(status: u16, error: Option<&str>, message: &str) -> SesAnswer {
    SesAnswer { status, error: error.map(str::to_owned), message: message.to_owned(), document: None }
}

fn not_sent(status: u16, error: Option<&str>, message: &str) -> SendFailure {
    match judge_answer(&answer(status, error, message), &ENVELOPE) {
        DeliveryEnd::NotSent(failure) => failure,
        other => panic!("{status} {error:?}: {other:?}"),
    }
}

#[test]
fn the_map_of_errors() {
    let rows = [
        (400, "MessageRejected", "no", "SES_MESSAGE_REJECTED", ContentRejected, Permanent, "PERMANENT_ERROR"),
        (
            400,
            "AccountSendingPausedException",
            "",
            "SES_ACCOUNT_SENDING_PAUSED",
            AccountSuspended,
            Account,
            "PERMANENT_ERROR",
        ),
        (
            400,
            "SendingPausedException",
            "",
            "SES_ACCOUNT_SENDING_PAUSED",
            AccountSuspended,
            Account,
            "PERMANENT_ERROR",
        ),
        (
            400,
            "AccountSuspendedException",
            "",
            "SES_ACCOUNT_SENDING_PAUSED",
            AccountSuspended,
            Account,
            "PERMANENT_ERROR",
        ),
        (
            400,
            "MailFromDomainNotVerifiedException",
            "",
            "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED",
            Configuration,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            400,
            "ConfigurationSetDoesNotExist",
            "",
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            Configuration,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            404,
            "NotFoundException",
            "",
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            Configuration,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (400, "Throttling", "Rate exceeded", "SES_THROTTLING", RateLimited, Transient, "QUOTA_ERROR"),
        (429, "TooManyRequestsException", "", "SES_THROTTLING", RateLimited, Transient, "QUOTA_ERROR"),
        (400, "MaxSendRateExceeded", "", "SES_MAX_SEND_RATE_EXCEEDED", RateLimited, Transient, "QUOTA_ERROR"),
        (
            429,
            "TooManyRequestsException",
            "Maximum sending rate exceeded.",
            "SES_MAX_SEND_RATE_EXCEEDED",
            RateLimited,
            Transient,
            "QUOTA_ERROR",
        ),
        (400, "DailyQuotaExceeded", "", "SES_DAILY_QUOTA_EXCEEDED", Quota, Account, "QUOTA_ERROR"),
        (
            400,
            "LimitExceededException",
            "Daily message quota exceeded.",
            "SES_DAILY_QUOTA_EXCEEDED",
            Quota,
            Account,
            "QUOTA_ERROR",
        ),
        (503, "ServiceUnavailable", "", "SES_SERVICE_UNAVAILABLE", ServerBusy, Transient, "TRANSIENT_ERROR"),
        (500, "InternalFailure", "", "SES_SERVICE_UNAVAILABLE", ServerBusy, Transient, "TRANSIENT_ERROR"),
        (408, "RequestTimeout", "", "SES_TIMEOUT", Timeout, Transient, "TIMEOUT_ERROR"),
        (
            403,
            "AccessDeniedException",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            403,
            "InvalidClientTokenId",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            403,
            "UnrecognizedClientException",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            403,
            "SignatureDoesNotMatch",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            403,
            "ExpiredTokenException",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (400, "BadRequestException", "", "SES_BAD_REQUEST", Protocol, Permanent, "PERMANENT_ERROR"),
        (418, "SomethingNewException", "", "SES_BAD_REQUEST", Protocol, Permanent, "PERMANENT_ERROR"),
        (429, "SomethingNewException", "", "SES_THROTTLING", RateLimited, Transient, "QUOTA_ERROR"),
        (
            403,
            "SomethingNewException",
            "",
            "SES_ACCESS_DENIED",
            Authentication,
            Account,
            "CONFIGURATION_ERROR",
        ),
        (
            507,
            "SomethingNewException",
            "",
            "SES_SERVICE_UNAVAILABLE",
            ServerBusy,
            Transient,
            "TRANSIENT_ERROR",
        ),
    ];
    for (status, error, message, code, category, severity, reference) in rows {
        let failure = not_sent(status, Some(error), message);
        assert_eq!(
            (failure.code.as_ref(), failure.category, failure.severity),
            (code, category, severity),
            "{error}"
        );
        assert_eq!(failure.reference_category(), reference, "{error}");
        assert_eq!((failure.original_code.as_deref(), failure.phase), (Some(error), FailurePhase::Request));
        assert!(!failure.message.is_empty());
    }
}

#[test]
fn an_unverified_sender_is_the_accounts_fault_and_an_unverified_recipient_the_mails() {
    let unverified = |identities: &str| {
        let message = format!(
            "Email address is not verified. The following identities failed the check in region US-EAST-1: {identities}"
        );
        let failure = not_sent(400, Some("MessageRejected"), &message);
        (failure.code.into_owned(), failure.severity)
    };
    let sender = ("SES_IDENTITY_NOT_VERIFIED".to_owned(), Account);
    let recipient = ("SES_MESSAGE_REJECTED".to_owned(), Permanent);
    assert_eq!(unverified("other@example.net"), sender);
    assert_eq!(unverified("ann@example.org, other@example.net"), sender);
    assert_eq!(unverified(""), sender);
    assert_eq!(unverified("Ann@Example.org"), recipient);
    assert_eq!(unverified("ann@example.org, bob@example.org"), recipient);
    let to_itself = MailEnvelope { recipients: &["shop@example.net"], ..ENVELOPE };
    assert_eq!(rejection_kind("not verified: shop@example.net", &to_itself), IDENTITY);
    let paused = not_sent(400, Some("MessageRejected"), "Sending paused for this account.");
    assert_eq!(paused.code, "SES_ACCOUNT_SENDING_PAUSED");
}

#[test]
fn an_answer_that_the_service_did_not_name_fails_no_mail() {
    for (status, code, severity) in [
        (301, "SES_ENDPOINT_INVALID", Account),
        (400, "SES_UNEXPECTED_ANSWER", Transient),
        (403, "SES_ACCESS_DENIED", Account),
        (404, "SES_ENDPOINT_INVALID", Account),
        (407, "SES_UNEXPECTED_ANSWER", Transient),
        (429, "SES_THROTTLING", Transient),
        (451, "SES_UNEXPECTED_ANSWER", Transient),
        (503, "SES_SERVICE_UNAVAILABLE", Transient),
        (999, "SES_UNEXPECTED_ANSWER", Transient),
    ] {
        let failure = not_sent(status, None, "");
        assert_eq!((failure.code.as_ref(), failure.severity), (code, severity), "{status}");
        assert_eq!(failure.original_code, Some(status.to_string()));
    }
    assert_eq!(not_sent(413, None, "").category, MessageTooLarge);
}

#[test]
fn a_gateway_that_fails_leaves_doubt_and_the_service_that_fails_does_not() {
    for status in [500, 502, 504] {
        let unnamed = judge_answer(&answer(status, None, ""), &ENVELOPE);
        assert!(
            matches!(&unnamed, DeliveryEnd::InDoubt(failure) if failure.code == "SES_SERVICE_UNAVAILABLE")
        );
        not_sent(status, Some("InternalFailure"), "");
    }
}

#[test]
fn a_success_is_the_services_only_with_its_id() {
    let success =
        |body: &str| judge_answer(&SesAnswer::new(200, &Default::default(), body.as_bytes()), &ENVELOPE);
    match success(r#"{"MessageId":"0100-1"}"#) {
        DeliveryEnd::Accepted { reply, provider_message_id } => {
            assert_eq!(
                (reply.text.as_str(), provider_message_id.as_deref()),
                ("taken as 0100-1", Some("0100-1"))
            );
        }
        other => panic!("{other:?}"),
    }
    let long = format!(r#"{{"MessageId":"{}"}}"#, "x".repeat(ID_BYTES_MAX + 1));
    for body in [
        "",
        "<html>ok</html>",
        "{}",
        r#"{"MessageId":""}"#,
        r#"{"MessageId":7}"#,
        r#"{"MessageId":"01"#,
        &long,
    ] {
        match success(body) {
            DeliveryEnd::InDoubt(failure) => assert_eq!(failure.code, "SES_UNEXPECTED_ANSWER", "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}
