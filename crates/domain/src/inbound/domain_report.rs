//! Domain reports: what other servers say about mail in a domain's name, a day at a time.
//!
//! DMARC aggregate reports (RFC 7489, 7.2) say which addresses sent mail in the domain's name and how it
//! passed. TLS reports (RFC 8460) say with which results servers connected to the domain's own. Both are
//! counts, and a result of either is one number in the database.

use crate::time::Time;

/// What a server reports about a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReport {
    /// The kind.
    pub kind: DomainReportKind,
    /// The domain, in lower case with A-labels.
    pub domain: String,
    /// Who reports, as the report says.
    pub organisation: String,
    /// The reporter's id of the report.
    pub report_id: String,
    /// The beginning of the time that it is about.
    pub began_at: Time,
    /// The end of that time.
    pub ended_at: Time,
    /// The policy of the domain, as the reporter found it.
    pub policy: Option<String>,
    /// The counts, in the order of sources and results, each pair once.
    pub lines: Vec<DomainReportLine>,
}

impl DomainReport {
    /// How many messages or sessions it counts.
    pub fn total(&self) -> i64 {
        self.lines.iter().fold(0, |sum, line| sum.saturating_add(line.count))
    }

    /// How many of them failed.
    pub fn failed(&self) -> i64 {
        let failed = self.lines.iter().filter(|line| is_failure(self.kind, line.result));
        failed.fold(0, |sum, line| sum.saturating_add(line.count))
    }
}

/// One count of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainReportLine {
    /// The address that sent, or the server that was connected to; empty for what is summed up.
    pub source: String,
    /// The number of the result: of a [`DmarcResult`] or a [`TlsSessionResult`].
    pub result: i64,
    /// How many messages or sessions.
    pub count: i64,
}

/// Whether a result of this kind of report is a failure. A result that is not known counts as one.
pub fn is_failure(kind: DomainReportKind, result: i64) -> bool {
    match kind {
        DomainReportKind::Dmarc => !DmarcResult::from_code(result).is_some_and(DmarcResult::passed),
        DomainReportKind::Tls => TlsSessionResult::from_code(result) != Some(TlsSessionResult::Success),
    }
}

/// The kind of a domain report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainReportKind {
    /// A DMARC aggregate report.
    Dmarc = 1,
    /// A TLS report.
    Tls = 2,
}

impl DomainReportKind {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Dmarc, Self::Tls];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dmarc => "dmarc",
            Self::Tls => "tls",
        }
    }

    /// The number in the database.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The kind with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// What is known of who sent the mail that brought a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportAuthentication {
    /// Nobody whom we trust checked it.
    Unknown = 0,
    /// The mail passed DMARC: it is from the domain that it names.
    Passed = 1,
    /// It did not pass. Its figures are not counted.
    Failed = 2,
}

impl ReportAuthentication {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Passed, Self::Failed];

    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }

    /// The number in the database.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The value with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.code() == code)
    }

    /// Whether the figures of such a report count.
    pub fn counts(self) -> bool {
        match self {
            Self::Unknown | Self::Passed => true,
            Self::Failed => false,
        }
    }
}

/// What a receiver did with mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DmarcDisposition {
    /// It was treated like any other.
    #[default]
    None = 0,
    /// It was treated with suspicion.
    Quarantine = 1,
    /// It was refused.
    Reject = 2,
}

impl DmarcDisposition {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::None, Self::Quarantine, Self::Reject];

    /// The word of the standard.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Quarantine => "quarantine",
            Self::Reject => "reject",
        }
    }
}

/// How mail passed at a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmarcResult {
    /// Whether a signature of the author's domain was valid.
    pub dkim: bool,
    /// Whether SPF allowed the sender, in the author's domain.
    pub spf: bool,
    /// What was done with it.
    pub disposition: DmarcDisposition,
}

impl DmarcResult {
    /// Whether the mail passed DMARC: one of the two is enough.
    pub fn passed(self) -> bool {
        self.dkim || self.spf
    }

    /// The number in the database.
    pub fn code(self) -> i64 {
        i64::from(self.dkim) + 2 * i64::from(self.spf) + 4 * self.disposition as i64
    }

    /// The result with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        let disposition = DmarcDisposition::ALL.into_iter().find(|one| *one as i64 == code >> 2)?;
        Some(Self { dkim: code & 1 == 1, spf: code & 2 == 2, disposition })
    }
}

/// How a session with the domain's servers went (RFC 8460, 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsSessionResult {
    /// The session was protected as the domain's policy asks.
    Success = 0,
    /// The server does not offer STARTTLS.
    StarttlsNotSupported = 1,
    /// The certificate is for another name.
    CertificateHostMismatch = 2,
    /// The certificate is too old.
    CertificateExpired = 3,
    /// The certificate is not trusted.
    CertificateNotTrusted = 4,
    /// Another failure of TLS.
    ValidationFailure = 5,
    /// The TLSA records are not valid.
    TlsaInvalid = 6,
    /// The records are not signed as they must be.
    DnssecInvalid = 7,
    /// DANE is required, and the server has no usable records.
    DaneRequired = 8,
    /// The MTA-STS policy could not be fetched.
    StsPolicyFetchError = 9,
    /// The MTA-STS policy is not valid.
    StsPolicyInvalid = 10,
    /// The certificate of the policy's server is not valid.
    StsWebpkiInvalid = 11,
    /// A failure that the standard does not name.
    Other = 12,
}

impl TlsSessionResult {
    /// Every value.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::StarttlsNotSupported,
        Self::CertificateHostMismatch,
        Self::CertificateExpired,
        Self::CertificateNotTrusted,
        Self::ValidationFailure,
        Self::TlsaInvalid,
        Self::DnssecInvalid,
        Self::DaneRequired,
        Self::StsPolicyFetchError,
        Self::StsPolicyInvalid,
        Self::StsWebpkiInvalid,
        Self::Other,
    ];

    /// The word of the standard.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::StarttlsNotSupported => "starttls-not-supported",
            Self::CertificateHostMismatch => "certificate-host-mismatch",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateNotTrusted => "certificate-not-trusted",
            Self::ValidationFailure => "validation-failure",
            Self::TlsaInvalid => "tlsa-invalid",
            Self::DnssecInvalid => "dnssec-invalid",
            Self::DaneRequired => "dane-required",
            Self::StsPolicyFetchError => "sts-policy-fetch-error",
            Self::StsPolicyInvalid => "sts-policy-invalid",
            Self::StsWebpkiInvalid => "sts-webpki-invalid",
            Self::Other => "other",
        }
    }

    /// The failure with this word; a report cannot call a failure a success.
    pub fn from_failure_word(word: &str) -> Self {
        let mut failures = Self::ALL.into_iter().filter(|one| *one != Self::Success);
        failures.find(|one| word.eq_ignore_ascii_case(one.as_str())).unwrap_or(Self::Other)
    }

    /// The number in the database.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The result with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.code() == code)
    }
}

/// A day in UTC, as days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportDay(pub i64);

impl ReportDay {
    const MS: i64 = 86_400_000;

    /// The day of a time.
    pub fn of(at: Time) -> Self {
        Self(at.as_millis().div_euclid(Self::MS))
    }

    /// Its first moment.
    pub fn begin(self) -> Time {
        Time::from_millis(self.0.saturating_mul(Self::MS))
    }

    /// The day that is this number of days earlier.
    pub fn before(self, days: u32) -> Self {
        Self(self.0 - i64::from(days))
    }
}

/// Whether reports about `reported` are about mail of somebody who uses `used`: the same domain, a parent of
/// it, whose policy may hold for it, or a subdomain.
pub fn is_about(reported: &str, used: &str) -> bool {
    let is_below = |low: &str, high: &str| low.strip_suffix(high).is_some_and(|rest| rest.ends_with('.'));
    // A domain without a dot is a suffix that others share.
    reported.contains('.') && (reported == used || is_below(used, reported) || is_below(reported, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_one_number() {
        for code in 0..12 {
            assert_eq!(DmarcResult::from_code(code).unwrap().code(), code);
        }
        assert_eq!((DmarcResult::from_code(12), DmarcResult::from_code(-1)), (None, None));
        for result in TlsSessionResult::ALL {
            assert_eq!(TlsSessionResult::from_code(result.code()), Some(result));
        }
        for kind in DomainReportKind::ALL {
            assert_eq!(DomainReportKind::from_code(kind.code()), Some(kind));
        }
        for one in ReportAuthentication::ALL {
            assert_eq!(ReportAuthentication::from_code(one.code()), Some(one));
        }
    }

    #[test]
    fn a_failure_is_never_a_success() {
        let read = TlsSessionResult::from_failure_word;
        assert_eq!(read("Certificate-Expired"), TlsSessionResult::CertificateExpired);
        assert_eq!((read("success"), read("")), (TlsSessionResult::Other, TlsSessionResult::Other));
    }

    #[test]
    fn a_report_is_about_a_domain_its_parents_and_what_is_below_it() {
        assert!(is_about("example.com", "example.com") && is_about("example.com", "mail.example.com"));
        assert!(is_about("news.example.com", "example.com"));
        assert!(!is_about("badexample.com", "example.com") && !is_about("com", "example.com"));
        assert!(!is_about("a.example.com", "b.example.com") && !is_about("", "example.com"));
    }
}
