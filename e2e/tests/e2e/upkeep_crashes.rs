//! The process dies at any commit of what is done in the background for many messages at once: moving mail to
//! the lanes of the receiving domains that limit it.

use postway_e2e::{Gateway, copies, events_of, eventually, mail, text};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

/// Mail that was accepted before its account had the limit is returned once and moved. Whatever commit is
/// struck, it goes out once, and once more for each doubt.
#[tokio::test]
async fn mail_that_is_moved_to_its_lane_goes_out_whichever_commit_is_struck() -> anyhow::Result<()> {
    const SLOW: usize = 4;
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let limit = async |gateway: &Gateway, limits: Value| {
        gateway.patch("/v1/accounts/relay", json!({"destinations": limits})).await
    };
    let mut crashes = 0;
    for round in 0..10 {
        gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
        limit(&gateway, json!({})).await?;
        let name = |n: usize| format!("slow-{round}-{n}");
        for n in 0..SLOW {
            gateway.send(mail(&name(n), "ada@slow.example")).await?;
        }
        limit(&gateway, json!({"slow.example": {"per_second": 2}})).await?;
        gateway.post("/v1/accounts/relay/activate", json!({})).await?;
        gateway.kill().await?;
        let point = ["store_before_commit", "store_after_commit"][round % 2];
        let failpoint = format!("{point}={}*off->1*return", 1 + round / 2);
        if gateway.launch(&[("FAILPOINTS", &failpoint)]).await.is_ok() {
            let ended = eventually("a crash or the last mail", async || {
                if !gateway.is_running()? {
                    return Ok(Some(true));
                }
                let last = gateway.message(&name(SLOW - 1)).await;
                Ok(last.is_ok_and(|last| text(&last, "status") == "sent").then_some(false))
            })
            .await?;
            crashes += usize::from(ended);
            gateway.kill().await?;
        } else {
            // Struck before it was ready: what is moved at the start is moved then.
            crashes += 1;
        }
        gateway.launch(&[]).await?;
        for n in 0..SLOW {
            let message = gateway.wait_for(&name(n), "sent").await?;
            let went_out = copies(&sink, text(&message, "uid"));
            let doubts = events_of(&message, "in_doubt");
            assert!((1..=1 + doubts).contains(&went_out), "{failpoint}: {went_out} copies of {message:#}");
        }
    }
    assert!(crashes >= 3, "the failpoint was met {crashes} times");
    Ok(())
}
