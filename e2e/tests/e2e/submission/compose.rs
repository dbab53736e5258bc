//! What `deploy/compose.yml` and `deploy/Containerfile` say, done by hand: the same variables, command and
//! health check, a mail of a program that signs in as the example's does, and mails of the library that the
//! example's application sends with.

use anyhow::{Context, ensure};
use postway_e2e::PATIENCE;
use tokio::process::Command;

use super::{MAIL, PLAIN, Stage, run};

const COMPOSE: &str = include_str!("../../../../deploy/compose.yml");
const CONTAINERFILE: &str = include_str!("../../../../deploy/Containerfile");
/// The network of the example, and the one that stands in for it here.
const NETWORKS: (&str, &str) = ("172.30.25.0/24", "127.0.0.0/8");

/// What the example sets, by name.
fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = COMPOSE.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name, value.trim_matches('"')))
}

fn set_to(name: &str) -> anyhow::Result<&'static str> {
    settings().find(|(of, _)| *of == name).map(|(_, value)| value).context(name.to_owned())
}

#[tokio::test]
async fn the_compose_example_takes_mail_as_it_says() -> anyhow::Result<()> {
    let (network, here) = NETWORKS;
    ensure!(COMPOSE.contains(&format!("subnet: {network}")), "the networks of the example differ");
    let own: Vec<(&str, String)> = settings()
        .filter(|(name, _)| name.starts_with("POSTWAY_") && *name != "POSTWAY_DATA_DIR")
        .map(|(name, value)| (name, value.replace(network, here)))
        .collect();
    ensure!(own.len() >= 4, "the example sets {own:?}");
    // It listens on every address of its container, at ports of its own.
    let own: Vec<(&str, String)> = own
        .into_iter()
        .map(|(name, value)| match value.strip_prefix("0.0.0.0:") {
            Some(_) => (name, "127.0.0.1:0".to_owned()),
            None => (name, value),
        })
        .collect();
    let env: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut stage = Stage::idle(&[]).await?;
    stage.env.clear();
    stage.launch(&env).await?;
    stage.furnish().await?;
    let log = stage.gateway.log();
    let is_unknown = |name: &str| log.contains(&format!("unknown variable {name}"));
    ensure!(!own.iter().any(|(name, _)| is_unknown(name)), "{log}");

    // The command by which a key is made, as its head says.
    let command = COMPOSE.lines().find_map(|line| line.split_once("exec postway postway "));
    let (_, command) = command.context("no command makes a key")?;
    let made = stage.gateway.cli(&command.split_whitespace().collect::<Vec<_>>()).await?;
    ensure!(made.code == Some(0), "{}", made.err);
    let key =
        made.out.split_whitespace().find(|word| word.starts_with("pw_")).context("no key is printed")?;

    ensure!(set_to("SMTP_SECURITY")? == "off" && set_to("SMTP_HOST")? == "postway");
    let listens = set_to("POSTWAY_SMTP_LISTEN")?;
    ensure!(listens.ends_with(&format!(":{}", set_to("SMTP_PORT")?)), "the program asks at another port");
    let mut client = super::Client::connect(stage.address(PLAIN).await?).await?;
    client.expect("220").await?;
    client.log_in(set_to("SMTP_USERNAME")?, key).await?;
    let taken = client.send(MAIL).await?;
    ensure!(taken.starts_with("250 "), "{taken}");
    stage.sink.wait_for(1, PATIENCE).await;
    // The example's application sends with this library, set up like this where SMTP_SECURITY is off.
    let (address, key) = (stage.address(PLAIN).await?, key.to_owned());
    let host = address.ip().to_string();
    let send = move || crate::client_matrix::lettre::send(&host, address.port(), &key);
    tokio::task::spawn_blocking(send).await??;
    stage.sink.wait_for(3, PATIENCE).await;

    // The image's health check finds it well, at the port where it is here.
    let check = CONTAINERFILE.lines().find_map(|line| line.trim().strip_prefix("CMD [\"bash\""));
    let check: Vec<String> =
        serde_json::from_str(&format!("[\"bash\"{}", check.context("no health check")?))?;
    let port = stage.gateway.url().rsplit(':').next().context("no port")?.to_owned();
    ensure!(check[2].contains("/8520 "), "it asks elsewhere: {check:?}");
    run(Command::new(&check[0]).arg(&check[1]).arg(check[2].replace("/8520 ", &format!("/{port} ")))).await?;
    let nobody = check[2].replace("/8520 ", "/1 ");
    ensure!(
        run(Command::new(&check[0]).arg(&check[1]).arg(nobody)).await.is_err(),
        "it is well with nobody there"
    );
    Ok(())
}
