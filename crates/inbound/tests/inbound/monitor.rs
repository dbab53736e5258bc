//! Reading mailboxes: where reading begins, what is registered, how faults are handled.

use std::collections::BTreeSet;

use postway_domain::{
    Clock, InboundState, Time,
    inbound::FolderCursor,
    mailbox::{MailboxRole, WatchStart},
};
use postway_inbound::SourceError;
use postway_store::{InboundStore, record::DirectoryChange};

use super::{TestGateway, key, mail, mailbox, states};

const ROLES: &[MailboxRole] = &[MailboxRole::Bounces];

fn day(number: i64) -> Time {
    Time::from_millis(super::NOW_MS + (number - 100) * 86_400_000)
}

async fn caught_up(gateway: &TestGateway) {
    gateway
        .until("the mailbox is read to its end", || async {
            let state = gateway.state().await;
            state.scanned_at.is_some() && state.lag() == Some(0)
        })
        .await;
}

async fn subjects(gateway: &TestGateway) -> Vec<String> {
    gateway.mails().await.into_iter().map(|mail| mail.subject.unwrap_or_default()).collect()
}

#[tokio::test]
async fn every_way_to_begin_takes_the_mail_it_says() {
    for (start, expected) in [
        (WatchStart::Now, &[][..]),
        (WatchStart::Beginning, &["Question 1", "Question 2", "Question 3", "Question 4"]),
        (WatchStart::Newest(2), &["Question 3", "Question 4"]),
        (WatchStart::Newest(10), &["Question 1", "Question 2", "Question 3", "Question 4"]),
        (WatchStart::Since(day(2)), &["Question 2", "Question 3", "Question 4"]),
        (WatchStart::Since(day(90)), &[]),
        (WatchStart::AfterUid(0), &["Question 1", "Question 2", "Question 3", "Question 4"]),
        (WatchStart::AfterUid(2), &["Question 3", "Question 4"]),
        (WatchStart::AfterUid(4), &[]),
        (WatchStart::AfterUid(4_000), &[]),
    ] {
        let gateway = TestGateway::new(start, ROLES).await;
        for number in 1..=4 {
            gateway.mail_server.deliver(mail(number), day(number as i64));
        }
        caught_up(&gateway).await;
        assert_eq!(subjects(&gateway).await, expected, "{start:?}");
        // Later mail is taken in every case, and old mail stays old if all get new UIDs.
        gateway.mail_server.deliver(mail(5), day(95));
        gateway.mail_server.renumber();
        let expected: BTreeSet<String> =
            expected.iter().map(|one| (*one).to_owned()).chain(["Question 5".to_owned()]).collect();
        gateway.settled(expected.len()).await;
        assert_eq!(subjects(&gateway).await.into_iter().collect::<BTreeSet<_>>(), expected, "{start:?}");
    }
}

#[tokio::test]
async fn an_old_mail_that_is_moved_into_the_folder_is_taken_also_while_nobody_watches() {
    for start in [WatchStart::Now, WatchStart::Since(day(90)), WatchStart::Newest(1)] {
        let gateway = TestGateway::new(start, ROLES).await;
        for number in 1..=3 {
            gateway.mail_server.deliver(mail(number), day(91 + number as i64));
        }
        caught_up(&gateway).await;
        let before = subjects(&gateway).await.len();
        // No node watches now, and the dates are from long before the watch began.
        gateway.mail_server.deliver(mail(5), day(1));
        gateway.settled(before + 1).await;
        gateway.mail_server.renumber();
        let is_read_anew = || async { gateway.state().await.cursor.is_some_and(|at| at.uid_validity == 2) };
        gateway.until("it is read anew", is_read_anew).await;
        gateway.mail_server.deliver(mail(6), day(2));
        let mails = gateway.settled(before + 2).await;
        let moved = mails.iter().filter_map(|mail| mail.subject.as_deref());
        assert_eq!(moved.skip(before).collect::<Vec<_>>(), ["Question 5", "Question 6"], "{start:?}");
    }
}

/// So long that mail seen earlier was reported by the server.
async fn poll_hourly(gateway: &TestGateway) {
    let mut hourly = mailbox(WatchStart::Now, ROLES);
    hourly.settings.poll_seconds = 3_600;
    hourly.version = 2;
    gateway.change(DirectoryChange::UpdateMailbox(hourly, 1)).await;
}

#[tokio::test]
async fn mail_that_comes_while_it_is_watched_is_told_and_read_at_once() {
    let gateway = TestGateway::new(WatchStart::Now, ROLES).await;
    poll_hourly(&gateway).await;
    gateway
        .until("what came is registered", || async {
            // Delivered after the first poll; the server reports it, and no poll is waited for.
            if gateway.state().await.scanned_at.is_some() && gateway.mail_server.state().mails.is_empty() {
                gateway.mail_server.deliver(mail(1), gateway.clock.now());
            }
            !gateway.mails().await.is_empty()
        })
        .await;
}

#[tokio::test]
async fn many_mails_are_registered_page_by_page_each_once() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    for number in 0..350 {
        gateway.mail_server.deliver(mail(number), day(1));
    }
    gateway.mail_server.state().next = 5_000_000;
    let mails = gateway.settled(350).await;
    assert!(mails.iter().all(|mail| mail.state == InboundState::NoMatch));
    assert_eq!(gateway.state().await.cursor.unwrap().last_uid, 4_999_999);
}

#[tokio::test]
async fn the_same_bytes_twice_are_one_mail_and_new_uids_change_nothing() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    gateway.mail_server.deliver(mail(1), day(1));
    gateway.mail_server.deliver(mail(1), day(1));
    gateway.mail_server.deliver(mail(2), day(1));
    gateway.settled(2).await;
    gateway.mail_server.renumber();
    gateway.mail_server.deliver(mail(3), day(1));
    gateway.settled(3).await;
    let cursor = gateway.state().await.cursor.unwrap();
    assert_eq!(cursor, FolderCursor { uid_validity: 2, last_uid: 4, not_before: None, old_through: 4 });
}

#[tokio::test]
async fn a_mail_that_is_gone_or_too_large_is_told_and_stops_nobody() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    gateway.mail_server.deliver(mail(1), day(1));
    let gone = gateway.mail_server.deliver(mail(2), day(1));
    let large = gateway.mail_server.deliver(mail(3), day(1));
    gateway.mail_server.deliver(mail(4), day(1));
    gateway.mail_server.state().vanishing.push(gone);
    gateway.mail_server.state().claims_size.insert(large, 30 * 1024 * 1024);
    let mails = gateway.settled(4).await;
    use InboundState::{Dead, Gone, NoMatch};
    assert_eq!(states(&mails), [NoMatch, Gone, Dead, NoMatch]);
    assert!(mails[2].error.as_deref().unwrap().contains("at most"));
}

#[tokio::test]
async fn a_mail_larger_than_the_server_said_is_read_all_the_same() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    let big = [mail(1), vec![b'x'; 2 * 1024 * 1024]].concat();
    let uid = gateway.mail_server.deliver(big.clone(), day(1));
    gateway.mail_server.state().claims_size.insert(uid, 10);
    gateway.mail_server.deliver(mail(2), day(1));
    let mails = gateway.settled(2).await;
    assert_eq!((mails[0].size, mails[0].state), (big.len() as u64, InboundState::NoMatch));
    let body = gateway.store.inbound_raw(&super::tenant(), mails[0].uid).await.unwrap().unwrap();
    assert!(body.blob().is_some(), "a large mail is not in its row");
    assert_eq!(gateway.depot.resolve(&super::tenant(), body).await.unwrap(), big);
}

#[tokio::test]
async fn a_server_that_makes_its_mails_small_has_only_the_room_of_what_it_said() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    for number in 0..20 {
        let uid = gateway.mail_server.deliver([mail(number), vec![b'x'; 120 * 1024]].concat(), day(1));
        gateway.mail_server.state().claims_size.insert(uid, 10);
    }
    gateway.until("the fault is noted", || async { gateway.state().await.error.is_some() }).await;
    let error = gateway.state().await.error.unwrap_or_default();
    assert!(error.contains("far more than it had said"), "{error}");
    assert!((1..20).contains(&gateway.mails().await.len()), "what came until then is kept");
    gateway.settled(20).await;
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_page_keeps_what_was_read() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    for number in 0..40 {
        gateway.mail_server.deliver(mail(number), day(1));
    }
    // Opening, a status, a list, and some of the mails.
    gateway.mail_server.state().breaks_after = Some(20);
    gateway.until("the fault is noted", || async { gateway.state().await.error.is_some() }).await;
    let read = gateway.mails().await.len();
    assert!(read > 0 && read < 40, "{read}");
    gateway.mail_server.state().breaks_after = None;
    gateway.settled(40).await;
    assert_eq!(gateway.state().await.error, None);
}

#[tokio::test]
async fn a_mailbox_that_cannot_be_opened_says_why_and_a_changed_one_is_tried_at_once() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    gateway.mail_server.deliver(mail(1), day(1));
    gateway.mail_server.state().closed = Some(SourceError::setup("login refused: check the password"));
    gateway.until("the fault is noted", || async { gateway.state().await.error.is_some() }).await;
    let state = gateway.state().await;
    assert_eq!(state.error.as_deref(), Some("login refused: check the password"));
    assert_eq!(state.error_since, Some(gateway.clock.now()));
    let opened = gateway.mail_server.state().opened;
    let stop = tokio_util::sync::CancellationToken::new();
    let running =
        tokio::spawn(gateway.monitor(std::sync::Arc::new(gateway.mail_server.clone())).run(stop.clone()));
    super::wait_until("it is tried", || async { gateway.mail_server.state().opened > opened }).await;
    gateway.mail_server.state().closed = None;
    let mut changed = mailbox(WatchStart::Beginning, ROLES);
    changed.version = 2;
    gateway.change(DirectoryChange::UpdateMailbox(changed, 1)).await;
    super::wait_until("it is read", || async { gateway.mails().await.len() == 1 }).await;
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_mailbox_that_is_being_rebuilt_is_tried_again_soon() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    gateway.mail_server.deliver(mail(1), day(1));
    let stop = tokio_util::sync::CancellationToken::new();
    let running =
        tokio::spawn(gateway.monitor(std::sync::Arc::new(gateway.mail_server.clone())).run(stop.clone()));
    super::wait_until("it is read", || async { gateway.state().await.scanned_at.is_some() }).await;
    gateway.mail_server.state().closed = Some(SourceError::setup("the folder was deleted under us"));
    gateway.mail_server.state().breaks_after = Some(0);
    gateway.mail_server.deliver(mail(2), day(1));
    let is_told = || async { gateway.state().await.error.is_some_and(|error| error.contains("deleted")) };
    super::wait_until("the fault is noted", is_told).await;
    (gateway.mail_server.state().closed, gateway.mail_server.state().breaks_after) = (None, None);
    super::wait_until("it is read again", || async { gateway.mails().await.len() == 2 }).await;
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn an_inactive_or_removed_mailbox_is_left_alone() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    caught_up(&gateway).await;
    gateway.change(DirectoryChange::DeleteMailbox(key())).await;
    gateway.mail_server.deliver(mail(1), day(1));
    let opened = gateway.mail_server.state().opened;
    let stop = tokio_util::sync::CancellationToken::new();
    let running =
        tokio::spawn(gateway.monitor(std::sync::Arc::new(gateway.mail_server.clone())).run(stop.clone()));
    let looks = gateway.looks();
    super::wait_until("it has looked a few times", || async { gateway.looks() > looks + 5 }).await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(gateway.mail_server.state().opened, opened);
}
