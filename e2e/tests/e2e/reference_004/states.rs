//! "Estados": each is the status of the log and of the outbox while it lasts.

use postway_e2e::{PATIENCE, text};
use postway_testkit::{HttpSource, SourceReply, postgres::PostgresDatabase};
use serde_json::json;

use super::{SEND_PATH, logged, mail, pipeline, send, taken};

/// While a file is fetched, while the company is suspended, while the service thinks.
/// Requirements 2, 5, 7, 11, 12.
#[tokio::test]
async fn each_state_is_seen_while_it_lasts_in_log_and_outbox() -> anyhow::Result<()> {
    let (store, ses) = (PostgresDatabase::create(), HttpSource::start().await);
    let gateway = pipeline(&store, &ses).await?;
    let (fetched, file) = SourceReply::ok("a file").held();
    let (answered, answer) = taken("0100018e").held();
    ses.serve("/a.txt", file);
    ses.serve(SEND_PATH, answer);
    let attached = json!({"attachments": [{"filename": "a.txt", "url": ses.url("/a.txt")}]});
    let (_, told) = send(&gateway, "req", &mail(attached)).await?;
    let id = text(&told, "outboxId").to_owned();
    ses.wait_for(1, PATIENCE).await;
    gateway.post("/v1/tenants/default/suspend", json!({})).await?;
    let seen = async |status: &str| -> anyhow::Result<()> {
        logged(&gateway, &id, |log| log["status"] == status).await?;
        let rows = format!(
            "SELECT l.status, o.status FROM postway_views.email_logs l JOIN postway_views.email_outbox o \
             ON o.\"outboxId\" = l.\"outboxId\" WHERE l.\"outboxId\" = '{id}'"
        );
        assert_eq!(store.run(&rows), format!("{status}|{status}"));
        Ok(())
    };

    seen("RECEIVED").await?;
    fetched.send_replace(true);
    seen("VALIDATED").await?;
    gateway.post("/v1/tenants/default/activate", json!({})).await?;
    ses.wait_for(2, PATIENCE).await;
    seen("SENT_ATTEMPT").await?;
    answered.send_replace(true);
    seen("SENT").await
}
