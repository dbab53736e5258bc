//! The process dies at any commit of what is done in the background for many messages at once: removing what
//! was kept long enough, for several tenants in one transaction, and moving mail to the lanes of the
//! receiving domains that limit it.

use postway_e2e::{Gateway, column, copies, events_of, eventually, mail, text};
use postway_testkit::SmtpSink;
use reqwest::Method;
use serde_json::{Value, json};

const TENANTS: [&str; 3] = ["default", "acme", "globex"];
/// Mails of each tenant.
const MAILS: usize = 40;
/// Nothing is kept.
const KEEP_NOTHING: (&str, &str) = ("POSTWAY_RETENTION_REPORT_RETENTION_SECONDS", "0");
/// After this many tries something else is wrong.
const ROUNDS_MAX: usize = 40;

async fn as_tenant(gateway: &Gateway, tenant: &str, path: &str) -> anyhow::Result<Value> {
    let request = gateway.request(Method::GET, path).header("X-Tenant", tenant);
    Ok(request.send().await?.error_for_status()?.json().await?)
}

/// How many mails ended at the sandbox: of a tenant for tests they are sent.
fn ended(stats: &Value) -> u64 {
    ["captured", "sent"].iter().filter_map(|status| stats["by_status"][status].as_u64()).sum()
}

/// How many mails of a tenant are there, which must be what is counted.
async fn left(gateway: &Gateway, tenant: &str) -> anyhow::Result<usize> {
    let listed = as_tenant(gateway, tenant, "/v1/messages?limit=500").await?;
    let listed = listed["data"].as_array().map_or(0, Vec::len);
    let stats = as_tenant(gateway, tenant, "/v1/stats").await?;
    assert_eq!(ended(&stats), listed as u64, "{tenant}: {stats:#}");
    Ok(listed)
}

/// A message that is listed has all its parts, and a tenant's count is that of its messages.
#[tokio::test]
async fn what_is_removed_for_many_tenants_is_whole_or_absent_whichever_commit_is_struck() -> anyhow::Result<()>
{
    let mut gateway = Gateway::start().await?;
    for tenant in &TENANTS[1..] {
        gateway.post("/v1/tenants", json!({"id": tenant, "name": tenant})).await?;
    }
    let (mut crashes, mut found_in_part, mut round) = (0, 0, 0);
    while round < 12 || (found_in_part == 0 && round < ROUNDS_MAX) {
        for tenant in TENANTS {
            let mails: Vec<Value> = (0..MAILS)
                .map(|n| mail(&format!("{tenant}-{round}-{n}"), "ada@example.net"))
                .map(|mut mail| {
                    mail["account"] = json!("sandbox");
                    mail
                })
                .collect();
            let batch = gateway.request(Method::POST, "/v1/messages/batch").header("X-Tenant", tenant);
            batch.json(&json!({"messages": mails})).send().await?.error_for_status()?;
        }
        for tenant in TENANTS {
            eventually("mail to be captured", async || {
                let stats = as_tenant(&gateway, tenant, "/v1/stats").await?;
                Ok((ended(&stats) >= MAILS as u64).then_some(()))
            })
            .await?;
        }
        gateway.kill().await?;
        let point = ["store_before_commit", "store_after_commit"][round % 2];
        let failpoint = format!("{point}={}*off->1*return", round / 2);
        if gateway.launch(&[KEEP_NOTHING, ("FAILPOINTS", &failpoint)]).await.is_ok() {
            let ended = eventually("a crash or the end of the removal", async || {
                if !gateway.is_running()? {
                    return Ok(Some(true));
                }
                let listed = as_tenant(&gateway, TENANTS[2], "/v1/messages").await;
                let is_empty =
                    listed.is_ok_and(|listed| listed["data"].as_array().is_some_and(Vec::is_empty));
                Ok(is_empty.then_some(false))
            })
            .await?;
            crashes += usize::from(ended);
            gateway.kill().await?;
        }
        gateway.launch(&[]).await?;
        let mut in_all = 0;
        for tenant in TENANTS {
            in_all += left(&gateway, tenant).await?;
            let listed = as_tenant(&gateway, tenant, "/v1/messages?limit=1").await?;
            for id in column(&listed, "data", "id") {
                let path = format!("/v1/messages/{id}/raw");
                let raw = gateway.request(Method::GET, &path).header("X-Tenant", tenant).send().await?;
                assert!(raw.status().is_success(), "{failpoint}: {id} has no bytes");
            }
        }
        found_in_part += usize::from(in_all > 0);
        round += 1;
    }
    assert!(crashes > 0 && found_in_part > 0, "{crashes} crashes, {found_in_part} before the removal");
    gateway.kill().await?;
    gateway.launch(&[KEEP_NOTHING]).await?;
    for tenant in TENANTS {
        eventually("all to be removed", async || Ok((left(&gateway, tenant).await? == 0).then_some(())))
            .await?;
    }
    Ok(())
}

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
