//! MTA-STS and TLS-RPT: whether the domain tells senders to insist on TLS (RFC 8461), and where they report that it
//! failed (RFC 8460). Both are about mail *to* the domain, so neither is needed to send from it.

use super::{
    dns::{DnsError, DnsLookup},
    report::{DomainCheckState, DomainFinding},
    tag, tags,
};

pub(super) async fn check(domain: &str, dns: &dyn DnsLookup) -> Vec<DomainFinding> {
    let (policy, reports) = (format!("_mta-sts.{domain}"), format!("_smtp._tls.{domain}"));
    let (policies, receivers) = tokio::join!(dns.txt(&policy), dns.txt(&reports));
    let sts = Announcement {
        check: "mta-sts",
        version: "STSv1",
        needs: "id",
        record: "v=STSv1; id=1".to_owned(),
        name: policy,
        absent: format!(
            "not needed; it lets senders insist on TLS when they write to {domain}. It also takes a policy at \
             https://mta-sts.{domain}/.well-known/mta-sts.txt, and a new id whenever that changes"
        ),
    };
    let rpt = Announcement {
        check: "tls-rpt",
        version: "TLSRPTv1",
        needs: "rua",
        record: format!("v=TLSRPTv1; rua=mailto:tls@{domain}"),
        name: reports,
        absent: format!("not needed; senders would report when TLS to {domain} failed"),
    };
    vec![sts.judge(policies), rpt.judge(receivers)]
}

/// A record that announces something, and what it must have.
struct Announcement {
    check: &'static str,
    version: &'static str,
    needs: &'static str,
    name: String,
    record: String,
    absent: String,
}

impl Announcement {
    fn judge(self, records: Result<Vec<String>, DnsError>) -> DomainFinding {
        let finding = |state| DomainFinding::new(self.check, state);
        let mut records = match records {
            Ok(records) => records,
            Err(error) => return finding(DomainCheckState::Unknown).advice(error.to_string()),
        };
        let begin = format!("v={}", self.version);
        records.retain(|record| record.trim_start().starts_with(&begin));
        let advice = match records.as_slice() {
            [] => {
                return finding(DomainCheckState::Absent)
                    .advice(self.absent)
                    .publish(&self.name, &self.record);
            }
            [record] if tags(record).is_some_and(|tags| tag(&tags, self.needs).is_some()) => {
                return finding(DomainCheckState::Ok).found(record);
            }
            [_] => format!("it has no {}, so it does nothing: mend the record of {}", self.needs, self.name),
            _ => "with more than one record none counts".to_owned(),
        };
        finding(DomainCheckState::Warn).found(&records.join(" | ")).advice(advice)
    }
}
