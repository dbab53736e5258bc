use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::DeflateEncoder, write::GzEncoder};
use postway_domain::domain_report::{DmarcDisposition, DmarcResult, DomainReportKind, TlsSessionResult};

use super::*;

fn record(ip: &str, count: &str, dkim: &str, spf: &str) -> String {
    format!(
        "<record><row><source_ip>{ip}</source_ip><count>{count}</count><policy_evaluated><disposition>reject\
         </disposition><dkim>{dkim}</dkim><spf>{spf}</spf><reason><type>other</type></reason></policy_evaluated>\
         </row><identifiers><header_from>example.com</header_from></identifiers><auth_results><dkim><domain>x\
         </domain><result>pass</result></dkim></auth_results></record>"
    )
}

fn dmarc(records: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\"><version>1.0</version>\
         <report_metadata><org_name>Receiver &amp; Sons</org_name><email>r@r.example</email><report_id> 17-4 \
         </report_id><date_range><begin>1700000000</begin><end>1700086399</end></date_range></report_metadata>\
         <policy_published><domain>Example.COM.</domain><adkim>r</adkim><p>Reject</p></policy_published>{records}\
         </feedback>"
    )
}

const TLS: &str = r#"{"organization-name":"Company-X","date-range":{"start-datetime":"2016-04-01T00:00:00Z",
 "end-datetime":"2016-04-01T23:59:59Z"},"contact-info":"sts@company-x.example","report-id":"5065427c@company-x.example",
 "policies":[{"policy":{"policy-type":"sts","policy-string":["version: STSv1"],"policy-domain":"Company-Y.example"},
 "summary":{"total-successful-session-count":5326,"total-failure-session-count":"303"},
 "failure-details":[{"result-type":"certificate-expired","receiving-mx-hostname":"mx1.company-y.example","failed-session-count":100},
 {"result-type":"starttls-not-supported","receiving-mx-hostname":"mx2.company-y.example","failed-session-count":200}]},
 {"policy":{"policy-type":"no-policy-found","policy-domain":"other.example"},"summary":{"total-successful-session-count":7}}]}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A zip of one file whose sizes are left to the end, as reporters that stream write it.
fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(bytes).unwrap();
    let mut zip = b"PK\x03\x04\x14\0\x08\0\x08\0\0\0\0\0".to_vec();
    zip.extend([0; 12]);
    zip.extend((name.len() as u16).to_le_bytes());
    zip.extend([0; 2]);
    zip.extend(name.as_bytes());
    zip.extend(deflate.finish().unwrap());
    zip.extend(b"PK\x07\x08and what follows");
    zip
}

fn mail(kind: &str, file: &[u8]) -> Vec<u8> {
    format!(
        "From: noreply@r.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n{{ Dear all }}\r\n--b\r\n\
         Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
        STANDARD.encode(file)
    )
    .into_bytes()
}

fn found(file: &[u8]) -> FoundReports {
    find(&mail("application/octet-stream", file))
}

#[test]
fn a_report_is_read_whatever_it_is_packed_in_and_labelled_as() {
    let xml =
        dmarc(&[record("192.0.2.1", "3", "pass", "fail"), record("192.0.2.1", "4", "pass", "fail")].concat());
    let packed =
        [xml.clone().into_bytes(), gzip(xml.as_bytes()), zip("r!example.com!1!2.XML", xml.as_bytes())];
    for file in &packed {
        for kind in ["application/gzip", "application/x-zip-compressed", "text/xml", "image/png"] {
            let [report] = &find(&mail(kind, file)).reports[..] else { panic!("one report") };
            assert_eq!((report.kind, report.domain.as_str()), (DomainReportKind::Dmarc, "example.com"));
            assert_eq!(
                (report.organisation.as_str(), report.report_id.as_str()),
                ("Receiver & Sons", "17-4")
            );
            assert_eq!(
                (report.began_at.as_millis(), report.policy.as_deref()),
                (1_700_000_000_000, Some("reject"))
            );
            let [line] = &report.lines[..] else { panic!("one line") };
            let result = DmarcResult { dkim: true, spf: false, disposition: DmarcDisposition::Reject };
            assert_eq!((line.source.as_str(), line.result, line.count), ("192.0.2.1", result.code(), 7));
            assert_eq!((report.total(), report.failed()), (7, 0));
        }
    }
    // A mail that is nothing but the file.
    let bare = [
        b"Content-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n".to_vec(),
        STANDARD.encode(gzip(xml.as_bytes())).into_bytes(),
    ]
    .concat();
    assert_eq!(find(&bare).reports.len(), 1);
}

#[test]
fn a_report_with_a_prefix_and_values_that_nobody_expects_is_read() {
    let xml = dmarc(
        &[
            record("mail.example", "2", "", "PASS"),
            record("::ffff:192.0.2.9", "-4", "fail", "fail"),
            record("2001:DB8::1", "99999999999999", "fail", "fail"),
        ]
        .concat(),
    );
    let xml = xml.replace("<feedback", "<d:feedback").replace("</feedback", "</d:feedback");
    let report = found(xml.as_bytes()).reports.remove(0);
    let lines: Vec<_> = report.lines.iter().map(|line| (line.source.as_str(), line.count)).collect();
    assert_eq!(lines, [("", 2), ("2001:db8::1", COUNT_MAX)]);
    assert_eq!(report.failed(), COUNT_MAX);
}

#[test]
fn a_tls_report_is_a_report_for_each_of_its_domains() {
    for file in [TLS.as_bytes().to_vec(), gzip(TLS.as_bytes()), zip("r.json", TLS.as_bytes())] {
        let [first, second] = &found(&file).reports[..] else { panic!("two reports") };
        assert_eq!((first.kind, first.domain.as_str()), (DomainReportKind::Tls, "company-y.example"));
        assert_eq!(
            (first.policy.as_deref(), second.policy.as_deref()),
            (Some("sts"), Some("no-policy-found"))
        );
        let lines: Vec<_> = first
            .lines
            .iter()
            .map(|line| (line.source.as_str(), TlsSessionResult::from_code(line.result).unwrap(), line.count))
            .collect();
        let expected = [
            ("", TlsSessionResult::Success, 5_326),
            ("", TlsSessionResult::Other, 3),
            ("mx1.company-y.example", TlsSessionResult::CertificateExpired, 100),
            ("mx2.company-y.example", TlsSessionResult::StarttlsNotSupported, 200),
        ];
        assert_eq!(lines, expected);
        assert_eq!((second.domain.as_str(), second.total(), second.failed()), ("other.example", 7, 0));
    }
}

#[test]
fn a_bomb_takes_no_more_than_its_bound_and_is_a_fault() {
    let bomb = vec![b' '; UNPACKED_BYTES_MAX + 1];
    for file in [gzip(&bomb), zip("r.xml", &bomb)] {
        let found = found(&file);
        assert_eq!((found.reports.len(), found.fault), (0, Some(DomainReportError::TooLarge)));
    }
    let twice = gzip(&gzip(b"<feedback/>"));
    assert_eq!(found(&twice).fault, Some(DomainReportError::Packed("it is packed twice")));
    // All files of a mail share the bound.
    let mut room = UNPACKED_BYTES_MAX;
    assert!(unpack::gzip(&gzip(&bomb[2..]), &mut room).is_ok());
    assert_eq!(unpack::gzip(&gzip(b"123"), &mut room), Err(DomainReportError::TooLarge));
}

#[test]
fn entities_document_types_and_depth_are_refused() {
    let bombs = [
        "<!DOCTYPE feedback [<!ENTITY a \"aaaa\">]><feedback>&a;</feedback>".to_owned(),
        dmarc("<record><row><source_ip>&xxe;</source_ip></row></record>"),
        dmarc(&"<a>".repeat(500)),
        dmarc("").replace("</feedback>", ""),
    ];
    for bomb in bombs {
        let found = found(bomb.as_bytes());
        assert!(found.reports.is_empty() && matches!(found.fault, Some(DomainReportError::Xml(_))), "{bomb}");
    }
}

#[test]
fn what_cannot_be_counted_is_a_fault_and_what_is_no_report_is_nothing() {
    for (without, lacks) in [("begin", "beginning"), ("domain", "domain"), ("report_id", "id")] {
        let xml = dmarc("").replace(&format!("<{without}>"), "<x>").replace(&format!("</{without}>"), "</x>");
        assert_eq!(found(xml.as_bytes()).fault, Some(DomainReportError::Lacks(lacks)));
    }
    let json = TLS.replace("\"policies\":[", "\"policies\":{");
    assert!(matches!(found(json.as_bytes()).fault, Some(DomainReportError::Json(_))));
    for file in ["<html><body>feedback</body></html>", "{\"a\": 1}", "PK\x03\x04", "plain", "", "\u{1f}"] {
        let found = found(file.as_bytes());
        assert!(found.reports.is_empty(), "{file}");
    }
    assert!(found(&zip("[Content_Types].xml", b"<feedback/>")).fault.is_none(), "an office document");
    assert!(found(&zip("photo.jpg", b"x")).fault.is_none());
}

#[test]
fn more_sources_than_are_kept_are_summed_up() {
    let many: String = (0..LINES_MAX + 500)
        .map(|n| record(&format!("10.0.{}.{}", n / 256, n % 256), "2", "fail", "fail"))
        .collect();
    let report = found(&gzip(dmarc(&many).as_bytes())).reports.remove(0);
    assert_eq!((report.lines.len(), report.lines[0].source.as_str()), (LINES_MAX + 1, ""));
    assert_eq!((report.lines[0].count, report.total()), (1_000, 2 * (LINES_MAX as i64 + 500)));
}
