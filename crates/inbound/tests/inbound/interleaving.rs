//! Crashes anywhere: whatever is interrupted and started again, each mail is registered once and forwarded
//! once.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use postway_domain::{
    Clock, InboundState, Incarnation,
    mailbox::{MailboxRole, WatchStart},
};
use postway_inbound::FolderSource;
use postway_store::InboundStore;
use proptest::{prelude::*, test_runner::Config};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{TestGateway, mail};

/// What happens between and during the lives of a process.
#[derive(Clone, Debug)]
enum Step {
    /// This many mails arrive.
    Deliver(usize),
    /// The server assigns new UIDs to all mail.
    Renumber,
    /// A process with this many monitors lives for this many turns of its runtime, and dies.
    Live { turns: u32, monitors: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1_usize..8).prop_map(Step::Deliver),
        1 => Just(Step::Renumber),
        4 => (1_u32..400, 1_usize..3).prop_map(|(turns, monitors)| Step::Live { turns, monitors }),
    ]
}

/// One life: all subsystems run until `over`, then the runtime is dropped with everything they were doing.
fn live(gateway: &TestGateway, monitors: usize, over: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let incarnation = Incarnation::new(gateway.clock.now(), &mut rand::rng());
        gateway.store.reclaim_inbound(&[incarnation], gateway.clock.now(), 1_000).await.unwrap();
        let source: Arc<dyn FolderSource> = Arc::new(gateway.mail_server.clone());
        for _ in 0..monitors {
            tokio::spawn(gateway.monitor(source.clone()).run(CancellationToken::new()));
        }
        tokio::spawn(gateway.router(source, incarnation).run(CancellationToken::new()));
        over.await;
    });
    runtime.shutdown_background();
}

fn check(steps: &[Step]) {
    let setting_up = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let gateway = setting_up.block_on(async {
        let gateway = TestGateway::new(WatchStart::Beginning, &[MailboxRole::Forward]).await;
        // The IMAP action comes between accepting and writing, and takes some turns: a crash may come there.
        let actions = json!([{"do": "forward", "to": ["bob@example.com"]}, {"do": "mark_seen"}]);
        gateway.rule("all", 1, json!({ "actions": actions })).await;
        gateway
    });
    let mut delivered = 0;
    for step in steps {
        match step {
            Step::Deliver(count) => {
                for _ in 0..*count {
                    gateway.mail_server.deliver(mail(delivered), gateway.clock.now());
                    delivered += 1;
                }
            }
            Step::Renumber => gateway.mail_server.renumber(),
            Step::Live { turns, monitors } => {
                live(&gateway, *monitors, async {
                    for _ in 0..*turns {
                        tokio::task::yield_now().await;
                    }
                });
                // Mail that was tried in vain is due again in the next life.
                gateway.advance(Duration::from_secs(2 * 3_600));
            }
        }
    }
    let mut lives = 0;
    loop {
        live(&gateway, 1, async {
            let quiet = async {
                loop {
                    let mails = gateway.mails().await;
                    if mails.len() == delivered && mails.iter().all(|mail| mail.state.is_settled()) {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let _ = tokio::time::timeout(Duration::from_secs(5), quiet).await;
        });
        let mails = setting_up.block_on(gateway.mails());
        if mails.iter().all(|mail| mail.state.is_settled()) && mails.len() >= delivered {
            break;
        }
        gateway.advance(Duration::from_secs(2 * 3_600));
        lives += 1;
        assert!(lives < 12, "it never comes to rest: {mails:#?}");
    }
    let mails = setting_up.block_on(gateway.mails());
    assert_eq!(mails.len(), delivered, "each mail is registered once");
    let dead = mails.iter().filter(|mail| mail.state == InboundState::Dead).count();
    let messages = setting_up.block_on(gateway.messages());
    let subjects: BTreeSet<String> = messages.iter().map(|message| message.summary.subject.clone()).collect();
    assert_eq!(subjects.len(), messages.len(), "none is forwarded twice");
    // A mail whose workers died as often as it may be tried is set aside, with that reason.
    assert!(
        messages.len() + dead >= delivered,
        "each is forwarded: {} of {delivered}, {dead} dead",
        messages.len()
    );
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_order_of_crashes_registers_and_forwards_each_mail_once(steps in prop::collection::vec(step(), 1..12)) {
        check(&steps);
    }
}

#[test]
fn a_crash_after_each_turn_of_one_life_loses_and_doubles_nothing() {
    for turns in (1..120).step_by(7) {
        check(&[
            Step::Deliver(3),
            Step::Live { turns, monitors: 1 },
            Step::Renumber,
            Step::Live { turns: 400, monitors: 2 },
        ]);
    }
}
