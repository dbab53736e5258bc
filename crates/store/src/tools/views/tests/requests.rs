//! Requests that views show are stored so that SQL can read them, from when a running store has noticed the
//! views.

use super::*;
use crate::{record::StoredBody, tools::views::NOTICED_AFTER};

on_each! {
    a_request_can_be_read_once_the_store_has_noticed_the_views
    a_store_opens_on_a_database_with_views
    events_from_before_are_shown_as_those_from_after
    histories_are_spread_beside_a_server_at_work
}

/// Large enough to be packed.
fn request() -> String {
    format!("{{\"html\":\"{}\"}}", "<p>as agreed</p>".repeat(40))
}

fn sample(n: u32) -> Sample {
    let sample = Sample::new(n).content(|content| {
        content.raw = bytes::Bytes::from("as agreed\r\n".repeat(60)).into();
        content.payload = Some(StoredBody::Inline(request().into()));
    });
    sample.client_id(&format!("m-{n}"))
}

/// What the view has of each message's request, in the order in which they were accepted.
async fn shown(rig: &Rig) -> Vec<Option<String>> {
    let rows = rig.show("messages", &["payload", "id"], "1 = 1", "id").await;
    rows.into_iter().map(|mut row| row.remove(0).filter(|text| !text.is_empty())).collect()
}

async fn a_request_can_be_read_once_the_store_has_noticed_the_views(rig: Rig) {
    stage::accept(&rig.store, sample(1)).await;
    rig.install().await;
    tokio::time::sleep(NOTICED_AFTER).await;
    stage::accept(&rig.store, sample(2)).await;
    assert_eq!(shown(&rig).await, [None, Some(request())], "the first was packed before there were views");
}

async fn a_store_opens_on_a_database_with_views(rig: Rig) {
    rig.install().await;
    rig.store.close().await;
    let Rig { store, database, _folder, _postgres } = rig;
    drop(store);
    let store: Shared = match &database {
        ViewsDatabase::Sqlite(path) => Arc::new(SqliteStore::open(path).await.unwrap()),
        ViewsDatabase::Postgres(url) => Arc::new(PostgresStore::open(url).await.unwrap()),
        ViewsDatabase::Mysql(url) => Arc::new(MysqlStore::open(url).await.unwrap()),
    };
    let rig = Rig { store, database, _folder, _postgres };
    stage::accept(&rig.store, sample(1)).await;
    assert_eq!(shown(&rig).await, [Some(request())]);
}

/// What the view has of a message's history: its steps, oldest first.
async fn steps(rig: &Rig, n: u32) -> Vec<Vec<Option<String>>> {
    let of_message = format!("email_id = 'm-{n}'");
    rig.show("email_statuses", &["status", "id"], &of_message, "id").await
}

async fn events_from_before_are_shown_as_those_from_after(rig: Rig) {
    stage::accept(&rig.store, sample(1)).await;
    rig.install().await;
    tokio::time::sleep(NOTICED_AFTER).await;
    stage::accept(&rig.store, sample(2)).await;
    let words =
        |rows: Vec<Vec<Option<String>>>| rows.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let (before, after) = (words(steps(&rig, 1).await), words(steps(&rig, 2).await));
    assert!(before.len() > 1 && before == after, "{before:?} {after:?}");
}

/// An installation reads and writes beside a server that does not stop.
async fn histories_are_spread_beside_a_server_at_work(rig: Rig) {
    for n in 1..=300 {
        stage::accept(&rig.store, sample(n)).await;
    }
    let store = rig.store.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let mut n = 1_000;
        while stopped.try_recv().is_err() {
            stage::accept(&store, sample(n)).await;
            n += 1;
        }
    });
    rig.install().await;
    stop.send(()).unwrap();
    server.await.unwrap();
    for n in [1, 150, 300] {
        assert!(steps(&rig, n).await.len() > 1, "{n}");
    }
}
