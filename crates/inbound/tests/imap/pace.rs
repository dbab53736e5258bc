//! How fast a mailbox is read. The figure is for people; the asserted rate is far lower, for busy machines.

use std::time::Duration;

use postway_testkit::dovecot::Dovecot;
use tokio::time::Instant;

use crate::{mail, open, text};

#[tokio::test]
async fn thousands_of_small_mails_are_read_without_delay() {
    const MAILS: usize = 4_000;
    let mails: Vec<_> = (0..MAILS).map(|number| mail(number, 2048)).collect();
    Dovecot::shared().append_all("pace", "INBOX", &mails);
    let mut session = open("pace").await;
    let folder = session.select("INBOX").await.unwrap();
    let began = Instant::now();
    let (mut from, mut count) = (1, 0);
    while from < folder.uid_next {
        let page = session.list(from, folder.uid_next - 1, 500).await.unwrap();
        let mut fetch = session.fetch(&page.mails, 1 << 20);
        while let Some(fetched) = fetch.next().await.unwrap() {
            assert_eq!(text(&fetched.content).len(), 2048);
            count += 1;
        }
        from = page.through + 1;
    }
    let took = began.elapsed();
    assert_eq!(count, MAILS);
    println!("{MAILS} mails in {took:?}: {:.0} a second", MAILS as f64 / took.as_secs_f64());
    assert!(took < Duration::from_secs(60), "{took:?}");
}
