//! The conformance suite on a real PostgreSQL, and what concerns this database alone.

mod migration;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use postway_domain::message::Outcome;
use postway_testkit::{cable::Cable as SilentCable, postgres::PostgresDatabase, postgres_pair::PostgresPair};
use sqlx::{Executor, PgPool, Row, SqlSafeStr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{PostgresStore, accept, brief, change, claim, connect, dedup, engine, hints, migrate, read};
use crate::{
    conformance::{
        sample::{self, Sample, at},
        stage,
    },
    directory,
    durability::DurabilityRisk,
    error::StoreError,
    journal,
    port::Store,
    preparation,
    record::{Acceptance, FeedPosition, Filter},
    reports, waits,
};

/// Ends every connection of the store, and waits until they are gone.
const END_ALL: &str = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
     WHERE datname = current_database() AND application_name = 'postway'";

async fn postgres() -> (Arc<dyn Store>, PostgresDatabase) {
    let database = PostgresDatabase::create();
    let store = PostgresStore::open(&database.url()).await.unwrap();
    (Arc::new(store), database)
}

async fn postgres_again(database: &PostgresDatabase) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(&database.url()).await.unwrap())
}

mod conformance {
    use super::{postgres, postgres_again};

    crate::conformance_tests!(postgres);
    crate::conformance_again_tests!(postgres, postgres_again, together);
}

/// The wake-up comes by NOTIFY, long before anyone would poll.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_share_the_queue_and_wake_each_other() {
    let (first, database) = postgres().await;
    stage::open(&first).await;
    let second: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url()).await.unwrap());
    let mut n = 0;
    // Listening takes a moment to begin; a hint before that is lost, as hints may be.
    loop {
        stage::accept(&first, Sample::new(n)).await;
        n += 1;
        let woken = tokio::time::timeout(Duration::from_millis(500), second.woken()).await;
        if woken.is_ok_and(|keys| keys.contains(&sample::relay())) {
            break;
        }
        assert!(n < 40, "never woken");
    }
    assert_eq!(stage::claim(&second, 1, at(1), 99).await.len(), n as usize);
    assert!(stage::claim(&first, 2, at(1), 99).await.is_empty());
}

#[tokio::test]
async fn a_node_stops_writing_once_the_schema_has_left_it_behind() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let beat = stage::beat_of(1);
    store.beat(&beat).await.unwrap();
    database.run("INSERT INTO schema_migration (version, name, writable_from) VALUES (99, 'expanded', 1)");
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(1)).await;
    assert!(PostgresStore::open(&database.url()).await.is_ok(), "an expanded schema is no obstacle");
    database.run("INSERT INTO schema_migration (version, name) VALUES (100, 'contracted')");
    assert!(matches!(store.beat(&beat).await, Err(StoreError::SchemaTooNew { found: 100, .. })));
    let refused = store.accept(vec![Sample::new(2).build()]).await;
    assert!(matches!(refused, Err(StoreError::SchemaTooNew { .. })));
    assert!(matches!(store.ping().await, Err(StoreError::SchemaTooNew { .. })));
    database.run("DELETE FROM schema_migration WHERE version = 100");
    store.beat(&beat).await.unwrap();
    stage::accept(&store, Sample::new(2)).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (store, database) = postgres().await;
    store.close().await;
    database.run("INSERT INTO schema_migration (version, name) VALUES (99, 'from the future')");
    let opened = PostgresStore::open(&database.url()).await;
    assert!(matches!(opened, Err(StoreError::SchemaTooNew { found: 99, .. })));
    let states = PostgresStore::migration_status(&database.url()).await;
    assert!(matches!(states, Err(StoreError::SchemaTooNew { .. })));
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = PostgresDatabase::create();
    let url = database.url();
    assert!(PostgresStore::migration_status(&url).await.unwrap().iter().all(|state| !state.applied));
    assert_eq!(PostgresStore::migrate(&url).await.unwrap().len(), migrate::MIGRATIONS.len());
    assert!(PostgresStore::migrate(&url).await.unwrap().is_empty());
    assert!(PostgresStore::migration_status(&url).await.unwrap().iter().all(|state| state.applied));
}

#[tokio::test]
async fn a_wrong_address_says_what_to_check() {
    let database = PostgresDatabase::create();
    let missing = format!("{}_missing", database.url());
    for (url, transient, told) in [
        ("mysql://somewhere/db", false, "postgres://"),
        (missing.as_str(), false, "check the database URL"),
        ("postgres://someone:hidden@127.0.0.1:1/db", true, "127.0.0.1:1"),
    ] {
        let Err(error) = PostgresStore::open(url).await else { panic!("{url} was opened") };
        assert_eq!(error.is_transient(), transient, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
}

#[tokio::test]
async fn lost_connections_are_replaced() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    for round in 0..3 {
        let message = Sample::new(round).build();
        let uid = message.uid;
        store.accept(vec![message]).await.unwrap();
        assert_ne!(database.run(END_ALL), "0");
        // One for each writer.
        store.apply(Vec::new()).await.unwrap();
        store.apply(Vec::new()).await.unwrap();
        assert!(store.body(uid).await.unwrap().is_some(), "round {round}");
    }
}

/// All connections for reading wait at a locked table, and more readers wait for one of them.
#[tokio::test]
async fn a_heartbeat_waits_for_nobody_who_reads() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    let mut locker = PgPool::connect(&database.url()).await.unwrap().acquire().await.unwrap();
    locker.execute("BEGIN; LOCK TABLE content IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let readers: Vec<_> = (0..32)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.body(uid).await })
        })
        .collect();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    stage::until("every connection for reading waits", async || database.run(waiting) == "8").await;
    for _ in 0..5 {
        store.beat(&stage::beat_of(1)).await.unwrap();
    }
    assert_eq!(database.run(waiting), "8");
    readers.iter().for_each(|reader| reader.abort());
}

/// A server whose machine lost its power says nothing, and ends no connection.
#[tokio::test]
async fn a_server_that_fell_silent_keeps_nobody_for_ever() {
    let database = PostgresDatabase::create();
    let cable = SilentCable::to(&database.url()).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(cable.url()).await.unwrap());
    stage::open(&store).await;
    let uid = stage::accept(&store, Sample::new(1)).await;
    assert!(store.body(uid).await.unwrap().is_some());
    cable.silence();
    waits::everything_ends(&store, uid).await;
}

/// A relay may answer anything, and its answer must be kept all the same.
#[tokio::test]
async fn text_with_nul_is_stored_and_asked_for() {
    let (store, _database) = postgres().await;
    stage::open(&store).await;
    let mut claimed = stage::accept_and_claim(&store, Sample::new(1), 1).await;
    assert!(stage::commit_wire(&store, &mut claimed, at(1)).await);
    let mut change = stage::outcome(&claimed, true, Outcome::Sent, at(2));
    if let Some(attempt) = &mut change.attempt {
        attempt.reply = Some(sample::reply(250, "2.0.0 ok \0 queued"));
    }
    assert_eq!(store.apply(vec![change]).await.unwrap(), [true]);
    let record = stage::record(&store, claimed.uid).await;
    let reply = record.attempts[0].reply.as_ref().unwrap();
    assert!(reply.text.ends_with("ok \u{fffd} queued"), "{reply:?}");
    let filter = Filter { tag: Some("\0".into()), ..Filter::default() };
    assert!(store.messages(&sample::tenant(), &filter, None, 10).await.unwrap().is_empty());
}

/// As the server of the tests is: it spares them the disk.
#[tokio::test]
async fn a_server_that_does_not_sync_its_commits_is_told() {
    let (store, database) = postgres().await;
    let told = |risks: &[DurabilityRisk]| -> Vec<(&str, String)> {
        risks.iter().map(|risk| (risk.setting, risk.value.clone())).collect()
    };
    let expected = [("fsync", "off".to_owned())];
    assert_eq!(told(store.durability_risks()), expected);
    assert_eq!(told(&PostgresStore::facts(&database.url()).await.unwrap().risks), expected);
}

/// Two writers, one server: what they undo of each other is done again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_tried_again() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let mut first = stage::accept_and_claim(&store, Sample::new(1), 1).await;
    let mut second = stage::accept_and_claim(&store, Sample::new(2), 2).await;
    for claimed in [&mut first, &mut second] {
        assert!(stage::commit_wire(&store, claimed, at(1)).await);
    }
    let (low, high) = if first.uid < second.uid { (first, second) } else { (second, first) };
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    let lock = "SELECT uid FROM message WHERE uid = $1 FOR UPDATE";
    sqlx::query("SET LOCAL deadlock_timeout = '60s'").execute(&mut *other).await.unwrap();
    sqlx::query(lock).bind(high.uid.as_bytes().as_slice()).execute(&mut *other).await.unwrap();
    let changes = [&low, &high].map(|claimed| stage::outcome(claimed, true, Outcome::Sent, at(5)));
    let applied = tokio::spawn({
        let store = store.clone();
        async move { store.apply(changes.into()).await }
    });
    // The writer holds the lower one and waits for the higher; now the other wants the lower. The writer looks for
    // deadlocks after a second, the other after a minute: so the writer is the one to be undone.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&pool).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    sqlx::query(lock).bind(low.uid.as_bytes().as_slice()).execute(&mut *other).await.unwrap();
    other.rollback().await.unwrap();
    assert_eq!(applied.await.unwrap().unwrap(), [true, true]);
}

/// A way to the server that can be cut at a statement.
struct Cable {
    url: String,
    cut: Arc<Mutex<Option<Cut>>>,
    /// Where it leads; nowhere once it was cut for good.
    server: Arc<Mutex<Option<String>>>,
}

/// The whole word with its end: a transaction begins with one that only starts so.
const COMMIT: &[u8] = b"COMMIT\0";

/// When a client sends this, the connection is cut: before the server gets it, or before the client gets the answer.
#[derive(Clone, Copy)]
struct Cut {
    at: &'static [u8],
    server_gets_it: bool,
    /// Whether nobody gets through afterwards.
    for_good: bool,
}

impl Cable {
    async fn to(database: &PostgresDatabase) -> Self {
        Self::from(database.url()).await
    }

    async fn from(url: String) -> Self {
        let server = url.split(['@', '/']).nth(3).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url.replace(&server, &listener.local_addr().unwrap().to_string());
        let cut: Arc<Mutex<Option<Cut>>> = Arc::default();
        let server = Arc::new(Mutex::new(Some(server)));
        let (shared, leads_to) = (cut.clone(), server.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Some(server) = leads_to.lock().unwrap().clone() else { continue };
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                tokio::spawn(carry(client, server, shared.clone(), leads_to.clone()));
            }
        });
        Self { url, cut, server }
    }

    fn cut(&self, at: &'static [u8], server_gets_it: bool) {
        *self.cut.lock().unwrap() = Some(Cut { at, server_gets_it, for_good: false });
    }

    /// Cuts it before the server gets this, and waits until that has happened. Nobody gets through until it leads elsewhere.
    fn cut_for_good(&self, at: &'static [u8]) {
        *self.cut.lock().unwrap() = Some(Cut { at, server_gets_it: false, for_good: true });
    }

    async fn is_cut(&self) {
        while self.server.lock().unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn lead_to(&self, server: String) {
        *self.server.lock().unwrap() = Some(server);
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    cut: Arc<Mutex<Option<Cut>>>,
    leads_to: Arc<Mutex<Option<String>>>,
) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let here = |cut: &mut Cut| asked[..count].windows(cut.at.len()).any(|window| window == cut.at);
                let cut = cut.lock().unwrap().take_if(here);
                if cut.is_none_or(|cut| cut.server_gets_it) {
                    server.write_all(&asked[..count]).await.unwrap();
                }
                if let Some(cut) = cut {
                    if cut.for_good {
                        *leads_to.lock().unwrap() = None;
                    }
                    if cut.server_gets_it {
                        assert_ne!(server.read(&mut answered).await.unwrap(), 0, "the server answers");
                    }
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Before the commit, nothing happened; after it, the server knows that all did. Either way it is done once.
#[tokio::test]
async fn a_connection_cut_in_mid_transaction_costs_nothing() {
    let database = PostgresDatabase::create();
    let cable = Cable::to(&database).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&cable.url).await.unwrap());
    stage::open(&store).await;
    for (number, (at, server_gets_it)) in
        (1..).zip([(COMMIT, true), (COMMIT, false), (b"INSERT INTO message", false)])
    {
        if at != COMMIT {
            // A statement's text goes over the wire once per connection: make them new.
            database.run(END_ALL);
        }
        cable.cut(at, server_gets_it);
        let message = Sample::new(number).build();
        let uid = message.uid;
        let answers = store.accept(vec![message]).await.unwrap();
        assert_eq!(answers, [Acceptance::Accepted { handed_over: false }]);
        assert!(cable.cut.lock().unwrap().is_none(), "the cable was not cut");
        assert!(store.body(uid).await.unwrap().is_some());
        assert_eq!(database.run("SELECT sum(count) FROM tally"), number.to_string());
    }
}

/// Nobody can say whether it is there. Those who asked are told so, all who shared the transaction, and find it when they ask again.
#[tokio::test]
async fn a_commit_that_nobody_can_settle_is_found_by_who_repeats_it() {
    let database = PostgresDatabase::create();
    let cable = Cable::to(&database).await;
    let server = cable.server.lock().unwrap().clone().unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&cable.url).await.unwrap());
    stage::open(&store).await;
    *cable.cut.lock().unwrap() = Some(Cut { at: COMMIT, server_gets_it: true, for_good: true });
    let message = |n: u32| Sample::new(n).client_id(&n.to_string()).build();
    let told = store.accept(vec![message(1), message(2)]).await;
    assert!(matches!(&told, Err(error @ StoreError::Unsettled(_)) if error.is_transient()), "{told:?}");
    cable.lead_to(server);
    for n in [1, 2] {
        // As a client repeats it: under its own id, as a message of another uid.
        let uid = message(n).uid;
        let again = Sample::new(n + 10).client_id(&n.to_string()).build();
        assert_eq!(store.accept(vec![again]).await.unwrap(), [Acceptance::Repeat { uid }]);
    }
    assert_eq!(database.run("SELECT count(*) FROM message"), "2");
}

/// An account that is being deleted is waited for, and then it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_for_an_account_that_is_being_deleted_is_not_acknowledged() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut deleting = pool.begin().await.unwrap();
    let delete = "DELETE FROM account WHERE tenant = 'acme' AND id = 'relay'";
    sqlx::query(delete).execute(&mut *deleting).await.unwrap();
    let accepted = tokio::spawn({
        let store = store.clone();
        async move { store.accept(vec![Sample::new(1).build()]).await }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&pool).await.unwrap() == 0 {
        assert!(!accepted.is_finished(), "it was not waited for");
        tokio::task::yield_now().await;
    }
    deleting.commit().await.unwrap();
    assert_eq!(accepted.await.unwrap().unwrap(), [Acceptance::AccountGone]);
}

/// A promoted standby gives the numbers of transactions that it has not seen to others: what they did is not what we did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_lost_in_a_failover_is_not_taken_for_anothers() {
    let mut servers = tokio::task::spawn_blocking(PostgresPair::start).await.unwrap();
    let cable = Cable::from(format!("postgres://postway@{}/postgres", servers.address(0))).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&cable.url).await.unwrap());
    stage::open(&store).await;
    let caught_up = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
    while servers.run(0, caught_up) != "1" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cable.cut_for_good(COMMIT);
    let message = Sample::new(1).build();
    let uid = message.uid;
    let accepting = tokio::spawn({
        let store = store.clone();
        async move { store.accept(vec![message]).await }
    });
    cable.is_cut().await;
    let servers = tokio::task::spawn_blocking(move || {
        servers.promote();
        // Others use the numbers that the lost one had.
        servers.run(1, "DO $$ BEGIN FOR n IN 1..200 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$");
        servers
    });
    let servers = servers.await.unwrap();
    cable.lead_to(servers.address(1));
    let accepted = accepting.await.unwrap().unwrap();
    assert_eq!(accepted, [Acceptance::Accepted { handed_over: false }]);
    assert!(store.body(uid).await.unwrap().is_some(), "what is acknowledged is there");
    assert_eq!(servers.run(1, "SELECT count(*) FROM message"), "1");
    store.close().await;
}

/// An id is taken before the commit, a place after it: what commits late comes later, and is not skipped.
#[tokio::test]
async fn a_page_that_commits_late_is_told() {
    let (store, database) = postgres().await;
    stage::open(&store).await;
    let early = stage::accept(&store, Sample::new(1)).await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut slow = pool.begin().await.unwrap();
    let page = "INSERT INTO journal (tenant, at, entries) SELECT tenant, at, entries FROM journal";
    sqlx::query(page).execute(&mut *slow).await.unwrap();
    let late = stage::accept(&store, Sample::new(2)).await;
    let told = async || {
        while store.sequence(9).await.unwrap() > 0 {}
        while store.fan_out(at(5), 9).await.unwrap() > 0 {}
        let feed = store.feed(&sample::tenant(), FeedPosition::default(), 9).await.unwrap();
        feed.iter().map(|one| one.uid).collect::<Vec<_>>()
    };
    assert_eq!(told().await, [early, late]);
    slow.commit().await.unwrap();
    assert_eq!(told().await, [early, late, early]);
    let done = database.run("SELECT position FROM progress ORDER BY name");
    assert_eq!(done.split_whitespace().collect::<Vec<_>>(), ["3", "3"]);
}

#[tokio::test]
async fn every_statement_prepares() {
    let (_store, database) = postgres().await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for sql in [
        engine::COUNT,
        engine::MARK,
        engine::MARKED,
        dedup::DROP_TOMBSTONES,
        dedup::INSERT_DEDUP,
        dedup::FIND_DEDUP,
        dedup::DROP_DEDUP,
        accept::INSERT_LANE,
        accept::INSERT_MESSAGE,
        accept::INSERT_CONTENT,
        accept::INSERT_RECIPIENT,
        accept::INSERT_EVENT,
        accept::INSERT_TAG,
        claim::DUE_LANES,
        claim::DUE_MESSAGES,
        claim::HOLD_LANE,
        claim::SENDING_IN_LANE,
        claim::LEASE,
        claim::OPEN_RECIPIENTS,
        change::COMMIT_WIRE,
        change::APPLY,
        change::CHANGE_RECIPIENT,
        change::END_RECIPIENTS,
        change::INSERT_ATTEMPT,
        change::LANES,
        read::FIND_CLIENT,
        read::RECIPIENTS,
        brief::RECIPIENTS,
        read::ATTEMPTS,
        read::EVENTS,
        read::RAW,
        read::PAYLOAD,
        read::KEPT,
        read::STALLED,
        read::OVERDUE,
        read::QUEUE,
        hints::NOTIFY,
        migrate::WRITABLE,
    ] {
        pool.prepare(sql.into_sql_str()).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
    }
    for sql in [crate::directory::statements(), crate::register::STATEMENTS.to_vec()].concat() {
        let text = crate::sql::numbered(sql.postgres);
        let prepared = pool.prepare(sqlx::AssertSqlSafe(text.clone()).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    pool.prepare(read::summary_sql().into_sql_str()).await.unwrap();
}

/// A plan is made while the tables are empty and kept when they are not, so it must be the right one from the start:
/// no scan of a table, and each hot statement on its index.
#[tokio::test]
async fn hot_statements_use_their_indexes() {
    let (_store, database) = postgres().await;
    let options = connect::options(&database.url()).unwrap();
    let [
        has_waiting,
        among_unfinished,
        due,
        heads,
        report_due,
        report_heads,
        waiting,
        leased,
        lease,
        unplaced,
        place,
    ] = [
        directory::HAS_WAITING,
        directory::AMONG_UNFINISHED,
        preparation::DUE,
        preparation::HEADS,
        reports::DUE,
        reports::HEADS,
        reports::WAITING,
        reports::LEASED.sample(),
        reports::LEASE.sample(),
        journal::UNPLACED,
        journal::PLACE.sample(),
    ]
    .map(|sql| crate::sql::numbered(sql.postgres));
    for (settings, sql, parameters, index) in [
        (connect::WRITER_SETTINGS, due.as_str(), 4, "preparation_due"),
        (connect::WRITER_SETTINGS, &has_waiting, 2, "message_due"),
        (connect::WRITER_SETTINGS, &among_unfinished, 4, "message_status"),
        ("", &heads, 2, "preparation_due"),
        (connect::WRITER_SETTINGS, &report_due, 7, "notification_due"),
        ("", &report_heads, 2, "notification_due"),
        (connect::WRITER_SETTINGS, &waiting, 5, "notification_due"),
        (connect::WRITER_SETTINGS, &leased, 8, "Index Scan using notification_"),
        (connect::WRITER_SETTINGS, &lease, 8, "Index Scan using notification_"),
        (connect::WRITER_SETTINGS, &unplaced, 1, "journal_unsequenced"),
        (connect::WRITER_SETTINGS, &place, 4, "journal_pkey"),
        (connect::WRITER_SETTINGS, claim::DUE_LANES, 3, "message_due"),
        (connect::WRITER_SETTINGS, claim::DUE_MESSAGES, 4, "message_due"),
        (connect::WRITER_SETTINGS, claim::LEASE, 5, "message_pkey"),
        (connect::WRITER_SETTINGS, claim::OPEN_RECIPIENTS, 1, "recipient_pkey"),
        (connect::WRITER_SETTINGS, change::COMMIT_WIRE, 5, "message_pkey"),
        (connect::WRITER_SETTINGS, change::APPLY, 16, "message_pkey"),
        (connect::WRITER_SETTINGS, change::CHANGE_RECIPIENT, 6, "recipient_pkey"),
        (connect::WRITER_SETTINGS, change::END_RECIPIENTS, 2, "recipient_pkey"),
        (connect::WRITER_SETTINGS, dedup::FIND_DEDUP, 3, "dedup_pkey"),
        (connect::WRITER_SETTINGS, dedup::DROP_TOMBSTONES, 4, "dedup_pkey"),
        (connect::WRITER_SETTINGS, dedup::DROP_DEDUP, 1, "dedup_uid"),
        ("", read::STALLED, 3, "message_status"),
        ("", read::OVERDUE, 2, "message_expiry"),
        ("", read::QUEUE, 1, "message_due"),
        ("", read::RAW, 2, "content_pkey"),
        ("", brief::RECIPIENTS, 2, "recipient_pkey"),
    ] {
        let mut conn = connect::connect(&options, settings).await.unwrap();
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; PREPARE hot AS {sql}; \
             EXPLAIN EXECUTE hot({})",
            vec!["NULL"; parameters].join(",")
        );
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&mut conn).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index), "{sql}\n{plan}");
        let scans = ["Seq Scan on message", "Seq Scan on notification", "Seq Scan on journal", "Hash Join"];
        assert!(!scans.iter().any(|scan| plan.contains(scan)), "{sql}\n{plan}");
    }
}
