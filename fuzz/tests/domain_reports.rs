//! Reports about domains: whatever a mail holds, reading it ends within bounds and with sums that can be stored.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use postway_fuzz::feed;
use postway_mime::domain_report::{self, COUNT_MAX, LINES_MAX, REPORTS_MAX, TEXT_BYTES_MAX};

const DMARC: &[u8] = b"Content-Type: text/xml\r\n\r\n<?xml version=\"1.0\"?><feedback><report_metadata><org_name>R</org_name>\
<report_id>1</report_id><date_range><begin>1700000000</begin><end>1700086399</end></date_range></report_metadata>\
<policy_published><domain>example.com</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.1\
</source_ip><count>3</count><policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf>\
</policy_evaluated></row></record></feedback>";
const TLS: &[u8] = b"Content-Type: application/tlsrpt+json\r\n\r\n{\"organization-name\":\"X\",\"date-range\":{\
\"start-datetime\":\"2016-04-01T00:00:00Z\",\"end-datetime\":\"2016-04-01T23:59:59Z\"},\"report-id\":\"5\",\"policies\":[{\
\"policy\":{\"policy-type\":\"sts\",\"policy-domain\":\"y.example\"},\"summary\":{\"total-successful-session-count\":5,\
\"total-failure-session-count\":3},\"failure-details\":[{\"result-type\":\"certificate-expired\",\
\"receiving-mx-hostname\":\"mx.y.example\",\"failed-session-count\":2}]}]}";
/// An empty stream, and the beginning of a zip.
const GZIP: &[u8] =
    b"Content-Type: application/gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
const ZIP: &[u8] = b"Content-Type: application/zip\r\n\r\nPK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a\0\0\0\x0a\0\0\0\x05\0\0\0r.xml<feedback>";

const WORDS: &[&[u8]] = &[
    b"<feedback>",
    b"</feedback>",
    b"<record>",
    b"</record>",
    b"<row>",
    b"<a/>",
    b"<!DOCTYPE feedback [<!ENTITY a \"b\">]>",
    b"&a;",
    b"&#x41;",
    b"<![CDATA[x]]>",
    b"<!--",
    b"-->",
    b"<count>9223372036854775807</count>",
    b"<count>-1</count>",
    b"<source_ip>::1</source_ip>",
    b"<begin>253402300799</begin>",
    b"\"failed-session-count\":9223372036854775807,",
    b"\"summary\":{},",
    b"[",
    b"{",
    b"]",
    b"}",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"\xff\xfe",
    b"\0",
    b"\r\n\r\n",
];

#[test]
fn a_report_about_a_domain_is_read_within_bounds() {
    feed(&[DMARC, TLS, GZIP, ZIP], WORDS, |raw| {
        let found = domain_report::find(raw);
        assert!(found.reports.len() <= REPORTS_MAX);
        for report in found.reports {
            // Each result may have one line more, without a source.
            assert!(report.lines.len() <= LINES_MAX + 13);
            assert!(report.lines.iter().all(|line| (1..=COUNT_MAX).contains(&line.count)));
            assert!(report.total() >= report.failed() && report.ended_at >= report.began_at);
            let texts = [&report.organisation, &report.report_id, &report.domain];
            assert!(texts.iter().all(|text| (1..=TEXT_BYTES_MAX).contains(&text.len())));
            assert!(report.began_at.as_millis() >= 0);
        }
    });
}
