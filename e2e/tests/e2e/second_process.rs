//! One process per data folder.

use postway_e2e::Gateway;

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused_and_the_first_goes_on() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let second = gateway.run(&["serve"], &[("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")], b"").await?;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("another postway has") && second.err.contains("postway.db"), "{second:?}");
    assert!(!second.out.contains("listens"), "{second:?}");
    gateway.get("/health/ready").await?;
    let uid = gateway
        .send(
            serde_json::json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"}),
        )
        .await?;
    gateway.wait_for(&uid, "sent").await?;
    Ok(())
}
