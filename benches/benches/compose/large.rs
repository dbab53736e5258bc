//! A large attachment through the door: how far the process's memory rises.

use std::{fs, sync::Arc};

use anyhow::Context as _;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use postway_domain::{Account, AccountSettings, Clock, Tenant, Time, secret::SecretKey};
use postway_intake::{Door, DoorParts, FetchConfig, IntakeLimits, RequestContext};
use postway_net::{AddressGuard, http::HttpClient, install_crypto_provider};
use postway_store::{blob::BlobStorage, record::DirectoryChange, sqlite::SqliteStore};
use serde_json::json;

const ATTACHMENT: usize = 25 * 1024 * 1024;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_millis(1_763_000_000_000)
    }
}

pub fn print() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(SqliteStore::open(&folder.path().join("bench.db")).await?);
        let now = Fixed.now();
        let tenant: postway_domain::TenantId = "default".parse()?;
        let mut made = Tenant::new(tenant.clone(), "Bench", now);
        made.default_account = Some("sandbox".parse()?);
        let account = Account {
            tenant: tenant.clone(),
            id: "sandbox".parse()?,
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: now,
            updated_at: now,
        };
        postway_store::DirectoryStore::change(
            &*store,
            DirectoryChange::CreateTenant(made, vec![account]),
            None,
        )
        .await?;
        install_crypto_provider();
        let door = Door::new(DoorParts {
            store,
            depot: Arc::new(BlobStorage::open(&format!("file://{}", folder.path().join("blobs").display()))?),
            clock: Arc::new(Fixed),
            secret_key: Arc::new(SecretKey::from_bytes(&[7; 32])?),
            http: HttpClient::new(Arc::new(AddressGuard::default()), Default::default()),
            fetch: FetchConfig::default(),
            limits: IntakeLimits {
                message_bytes_max: 64 * 1024 * 1024,
                request_bytes_max: 64 * 1024 * 1024,
                ..IntakeLimits::default()
            },
            mail_domain: "bench.example".to_owned(),
            public_url: None,
        });
        let before = status("VmRSS")?;
        // The request counts, as a server holds it too; what it took to make it does not.
        let body = Bytes::from(request());
        fs::write("/proc/self/clear_refs", "5").context("the peak of memory cannot be reset")?;
        let ctx = RequestContext {
            tenant,
            request_id: "bench".to_owned(),
            idempotency_key: None,
            dry_run: false,
            refuses_capture: false,
            any_subject: false,
            spoken_times: false,
            on_doubt: None,
            restrictions: None,
            trace: postway_intake::RequestTrace::default(),
        };
        door.accept_json(&ctx, body).await?;
        let rose = status("VmHWM")?.saturating_sub(before);
        let times = rose as f64 / ATTACHMENT as f64;
        println!("\n25 MiB attached, accepted as JSON: memory rose by {times:.2} times its size   aim: 4");
        anyhow::Ok(())
    })
}

/// The request as a client sends it.
fn request() -> String {
    let content: Vec<u8> = (0..ATTACHMENT).map(|index| (index * 31) as u8).collect();
    let content = BASE64_STANDARD.encode(content);
    json!({"from": "a@example.com", "to": "b@example.net", "subject": "x", "text": "x",
        "attachments": [{"filename": "a.bin", "content": content}]})
    .to_string()
}

/// A figure of this process, in bytes.
fn status(name: &str) -> anyhow::Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).context("the figure is missing")?;
    let figure = line.split_whitespace().nth(1).context("the figure is missing")?;
    Ok(figure.parse::<usize>()? * 1024)
}
