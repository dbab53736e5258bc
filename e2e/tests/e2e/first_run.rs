//! A fresh machine: nothing configured, and the command line works at once.

use std::{fs, os::unix::fs::PermissionsExt};

use postway_e2e::{Gateway, text};
use serde_json::{Value, json};

#[tokio::test]
async fn the_first_start_shows_a_key_once_and_captures_mail() -> anyhow::Result<()> {
    let mut gateway = Gateway::start_untouched(&[]).await?;
    let key_file = gateway.data_dir().join("admin.key");
    assert_eq!(fs::metadata(&key_file)?.permissions().mode() & 0o777, 0o600);

    let mail = json!({"from": "shop@example.com", "to": "ada@example.net", "subject": "First", "text": "Hi"});
    let uid = gateway.send(mail).await?;
    let message = gateway.wait_for(&uid, "captured").await?;
    assert_eq!((text(&message, "account"), text(&message, "id")), ("sandbox", uid.as_str()));
    let raw = gateway.get(&format!("/v1/messages/{uid}/raw")).await?;
    let raw = raw.as_str().unwrap_or_default();
    assert!(raw.contains("Subject: First\r\n") && raw.contains("To: <ada@example.net>\r\n"), "{raw}");

    let listed = gateway.cli(&["messages", "list"]).await?;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.out.contains(&uid) && listed.out.contains("captured"), "{listed:?}");
    assert!(
        gateway.printed().contains("mail of tenant default is captured, not sent"),
        "{}",
        gateway.printed()
    );

    let key = gateway.key();
    assert!(gateway.terminate().await?.success());
    assert_eq!(gateway.printed().matches(&key).count(), 1, "{}", gateway.printed());

    gateway.launch(&[]).await?;
    assert_eq!(gateway.key(), key);
    gateway.wait_for(&uid, "captured").await?;
    assert!(gateway.terminate().await?.success());
    let printed = gateway.printed();
    assert_eq!(printed.matches("postway listens on http://127.0.0.1:").count(), 2, "{printed}");
    assert_eq!(printed.matches(&key).count(), 1, "the key is shown once: {printed}");
    assert!(!gateway.log().contains(&key));
    Ok(())
}

#[tokio::test]
async fn the_command_line_hands_over_mail_written_or_ready_made() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let eml = b"From: shop@example.com\r\nTo: <ada@example.net>\r\nSubject: Ready made\r\n\r\nHi\r\n";
    fs::write(gateway.folder().join("ready.eml"), eml)?;

    let written = ["send", "--wait", "--json", "--from", "shop@example.com", "--to", "ada@example.net"];
    let written = [&written[..], &["--subject", "Written", "--text", "-", "--id", "by-hand"]].concat();
    let from_file = ["send", "--wait", "--json", "--eml", "ready.eml"];
    let from_stdin = ["send", "--wait", "--json", "--eml", "-", "--id", "piped"];
    for (args, input, subject) in [
        (&written[..], &b"a text from standard input"[..], "Written"),
        (&from_file[..], b"", "Ready made"),
        (&from_stdin[..], eml, "Ready made"),
    ] {
        let sent = gateway.cli_with(args, input).await?;
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let message: Value = serde_json::from_str(&sent.out)?;
        assert_eq!((text(&message, "status"), text(&message, "subject")), ("sent", subject));
    }
    let raw = gateway.cli(&["messages", "raw", "by-hand"]).await?;
    assert!(raw.out.contains("a text from standard input"), "{raw:?}");
    let shown = gateway.cli(&["messages", "show", "piped"]).await?;
    assert!(shown.out.contains("ada@example.net") && shown.out.contains("accepted"), "{shown:?}");
    Ok(())
}

#[tokio::test]
async fn exit_codes_tell_refused_from_missing_from_unreachable() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let missing = gateway.cli(&["messages", "show", "nobody-knows-it"]).await?;
    assert_eq!(missing.code, Some(5), "{missing:?}");
    let refused = gateway.cli(&["send", "--from", "nobody", "--to", "a@example.net", "--text", "x"]).await?;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("from"), "{refused:?}");
    let unreachable = gateway.cli(&["--url", "http://127.0.0.1:1", "messages", "list"]).await?;
    assert_eq!(unreachable.code, Some(3), "{unreachable:?}");
    let usage = gateway.cli(&["messages", "lost"]).await?;
    assert_eq!(usage.code, Some(2), "{usage:?}");
    Ok(())
}

#[tokio::test]
async fn the_configuration_is_checked_and_printed_without_its_secrets() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let key = "a-key-that-must-never-be-printed-anywhere";
    let env = [("POSTWAY_ADMIN_KEY", key)];
    for args in [&["config", "check"][..], &["config", "print"], &["config", "print", "--json"]] {
        let ran = gateway.run(args, &env, b"").await?;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains(key) && !ran.err.contains(key), "{ran:?}");
    }
    let printed = gateway.run(&["config", "print"], &env, b"").await?.out;
    assert!(printed.contains("admin_key") && printed.contains("POSTWAY_ADMIN_KEY"), "{printed}");

    fs::write(gateway.folder().join("wrong.toml"), "[http]\nlisten = \"127.0.0.1:0\"\ncolour = \"red\"\n")?;
    let wrong = gateway.run(&["--config", "wrong.toml", "config", "check"], &[], b"").await?;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("colour") && wrong.err.contains('3'), "names the key and its line: {wrong:?}");
    Ok(())
}
