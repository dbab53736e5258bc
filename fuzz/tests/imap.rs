//! The whole IMAP client against servers that mean harm: whatever they say, it ends in time, within its
//! bounds, and believes nothing.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use postway_fuzz::{imap, try_seeds};
use postway_inbound::imap::{
    FetchedContent, ImapConnection, ImapDeadlines, ImapLogin, ImapSession, ImapTlsMode, MailboxError,
};
use postway_net::{AddressGuard, TlsClient};
use rand::{Rng, rngs::StdRng};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::Instant,
};

/// How long the client waits for anything.
const SHORT: Duration = Duration::from_millis(100);
/// The longest mail that is taken.
const MAIL_BYTES_MAX: usize = 2_000;
/// Mails of a page.
const PAGE: usize = 50;
/// Commands that a server answers before it hangs up.
const COMMANDS_MAX: u32 = 40;

/// Speaks until the client leaves, or longer makes no sense.
async fn serve(stream: TcpStream, mut random: StdRng) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(&imap::greeting(&mut random)).await?;
    for _ in 0..COMMANDS_MAX {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let tag = line.split(' ').next().unwrap_or_default().to_owned();
        let said = match random.random_range(0..4) {
            // Most sign-ins and some commands succeed, so that the client gets further.
            0..=2 if line.contains("AUTHENTICATE") || line.contains("LOGIN") => {
                format!("{tag} OK in\r\n").into_bytes()
            }
            0 if line.contains("SELECT") => format!(
                "* {} EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT {}] x\r\n{tag} OK\r\n",
                random.random_range(0..100),
                random.random_range(1..5_000_000_000_u64),
            )
            .into_bytes(),
            _ => imap::answer(&mut random, &tag),
        };
        stream.write_all(&said).await?;
        if random.random_bool(0.05) {
            return Ok(());
        }
    }
    Ok(())
}

/// Uses a mailbox in every way there is.
async fn use_all(connection: &ImapConnection, tls: &TlsClient) -> Result<(), MailboxError> {
    let mut session = ImapSession::open(connection, tls, ImapDeadlines::uniform(SHORT)).await?;
    let folder = session.select("INBOX").await?;
    assert!(folder.uid_validity > 0 && folder.uid_next > 0);
    let last = folder.uid_next.saturating_sub(1);
    let page = session.list(1, last, PAGE).await?;
    assert!(page.mails.len() <= PAGE && (page.through <= last || last == 0));
    let uids: Vec<u32> = page.mails.iter().map(|mail| mail.uid).collect();
    assert!(uids.is_sorted() && uids.windows(2).all(|two| two[0] != two[1]), "{uids:?}");
    assert!(uids.iter().all(|uid| (1..=page.through).contains(uid)), "{uids:?}");
    let mut fetched = Vec::new();
    let mut fetch = session.fetch(&page.mails, MAIL_BYTES_MAX);
    while let Some(one) = fetch.next().await? {
        if let FetchedContent::Mail(raw) = &one.content {
            assert!(raw.len() <= MAIL_BYTES_MAX);
        }
        fetched.push(one.uid);
    }
    fetched.sort_unstable();
    assert_eq!(fetched, uids, "each mail is answered for once");
    session.first_of_newest(10).await?;
    session.first_since(jiff::Timestamp::UNIX_EPOCH).await?;
    session.mark_seen(1).await?;
    session.move_to(1, "Done").await?;
    if session.has_idle() {
        session.idle(Instant::now() + Duration::from_millis(5)).await?;
    }
    session.logout().await;
    Ok(())
}

#[test]
fn the_client_survives_whatever_a_server_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    postway_net::install_crypto_provider();
    let tls = TlsClient::new();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let connection = ImapConnection {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().unwrap().port(),
        tls: ImapTlsMode::None,
        login: ImapLogin::Password { username: "u".to_owned(), password: "p".into() },
        extra_roots_pem: None,
        proxy: None,
        guard: AddressGuard::with_loopback().into(),
    };
    try_seeds(|random| {
        let random = random.clone();
        runtime.block_on(async {
            let client = use_all(&connection, &tls);
            let server = async {
                let (stream, _) = listener.accept().await.unwrap();
                // The client leaves in the middle of sentences.
                let _ = serve(stream, random).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                // An error is an answer.
                _ = client => {}
                () = server => {}
            }
        });
    });
}
