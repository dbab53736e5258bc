//! A rule that is written but not listed would never run.

#[test]
fn every_rule_is_listed() {
    let lists = [include_str!("rules.rs"), include_str!("again.rs")];
    let themes = [
        include_str!("accept.rs"),
        include_str!("accounts.rs"),
        include_str!("again.rs"),
        include_str!("audit.rs"),
        include_str!("blobs.rs"),
        include_str!("bodies.rs"),
        include_str!("circuits.rs"),
        include_str!("claim.rs"),
        include_str!("collapse.rs"),
        include_str!("dedup.rs"),
        include_str!("dkim.rs"),
        include_str!("erase.rs"),
        include_str!("fan_out.rs"),
        include_str!("fates.rs"),
        include_str!("fence.rs"),
        include_str!("findings.rs"),
        include_str!("handover.rs"),
        include_str!("held.rs"),
        include_str!("inbound.rs"),
        include_str!("journal.rs"),
        include_str!("keys.rs"),
        include_str!("lease.rs"),
        include_str!("limits.rs"),
        include_str!("links.rs"),
        include_str!("mailboxes.rs"),
        include_str!("nodes.rs"),
        include_str!("notifications.rs"),
        include_str!("pauses.rs"),
        include_str!("permits.rs"),
        include_str!("preparation.rs"),
        include_str!("read.rs"),
        include_str!("recipients.rs"),
        include_str!("retention.rs"),
        include_str!("revive.rs"),
        include_str!("settle.rs"),
        include_str!("subscribers.rs"),
        include_str!("suppress.rs"),
        include_str!("templates.rs"),
        include_str!("tenants.rs"),
        include_str!("traces.rs"),
        include_str!("wire.rs"),
    ];
    for line in themes.iter().flat_map(|theme| theme.lines()) {
        let Some(rule) = line.strip_prefix("pub async fn ") else {
            continue;
        };
        let name = rule.split('(').next().unwrap();
        let listed = lists.iter().flat_map(|list| list.lines()).any(|line| line.trim() == name);
        assert!(listed, "{name} is in no list of tests");
    }
}
