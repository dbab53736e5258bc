//! Connections that are cut at a statement: a request is done once, or its caller gets an error.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use postway_testkit::{postgres::PostgresDatabase, postgres_pair::PostgresPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::END_ALL;
use crate::{
    conformance::{sample::Sample, stage},
    driver::postgres::PostgresStore,
    error::StoreError,
    port::Store,
    record::Acceptance,
};

/// A way to the server that can be cut at a statement.
struct Cable {
    url: String,
    cut: Arc<Mutex<Option<Cut>>>,
    /// Where it leads; `None` after a permanent cut.
    server: Arc<Mutex<Option<String>>>,
}

/// The whole word with its end: a transaction begins with one that only starts so.
const COMMIT: &[u8] = b"COMMIT\0";

/// When a client sends this, the connection is cut: before the server gets it, or before the client gets the
/// answer.
#[derive(Clone, Copy)]
struct Cut {
    at: &'static [u8],
    server_gets_it: bool,
    /// Whether no connection gets through afterwards.
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

    /// Cuts it before the server gets this text, and waits until that has happened. No connection gets
    /// through until it leads elsewhere.
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

/// It is unknown whether it was stored. All callers that shared the transaction get that error, and find the
/// message when they ask again.
#[tokio::test]
async fn a_commit_that_nobody_can_settle_is_found_by_who_repeats_it() {
    let database = PostgresDatabase::create();
    let cable = Cable::to(&database).await;
    let server = cable.server.lock().unwrap().clone().unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&cable.url).await.unwrap());
    stage::open(&store).await;
    *cable.cut.lock().unwrap() = Some(Cut { at: COMMIT, server_gets_it: true, for_good: true });
    let message = |n: u32| Sample::new(n).client_id(&n.to_string()).build();
    let answer = store.accept(vec![message(1), message(2)]).await;
    assert!(matches!(&answer, Err(error @ StoreError::Unsettled(_)) if error.is_transient()), "{answer:?}");
    cable.lead_to(server);
    for n in [1, 2] {
        // As a client repeats it: under its own id, as a message of another uid.
        let uid = message(n).uid;
        let again = Sample::new(n + 10).client_id(&n.to_string()).build();
        assert_eq!(store.accept(vec![again]).await.unwrap(), [Acceptance::Repeat { uid }]);
    }
    assert_eq!(database.run("SELECT count(*) FROM message"), "2");
}

/// A promoted standby gives the numbers of transactions that it has not seen to others: what they did is not
/// what we did.
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
