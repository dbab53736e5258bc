//! Tests of fetching, against a source that misbehaves and folders full of traps.

mod folders;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use postway_domain::Time;
use postway_net::{AddressGuard, http::HttpSettings};
use postway_testkit::{HttpSource, SourceReply};
use tokio::time::Instant;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000)
    }
}

/// Small bounds; 127.0.0.1 is allowed, and no other private address.
fn config() -> FetchConfig {
    FetchConfig { file_bytes_max: 100_000, message_bytes_max: 150_000, ..FetchConfig::default() }
}

fn fetcher(config: FetchConfig) -> FileFetcher {
    let guard = AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
    FileFetcher::new(HttpClient::new(Arc::new(guard), HttpSettings::default()), config, Arc::new(StillClock))
}

/// These folders, for the tenant of these tests.
fn opened(folders: &[&Path]) -> Vec<AttachmentFolder> {
    folders.iter().map(|folder| format!("shop:{}", folder.display()).parse().unwrap()).collect()
}

fn tenant() -> TenantId {
    "shop".parse().unwrap()
}

/// The scope of files that are mailed and may be cached.
fn scope(tenant: &TenantId) -> FetchScope<'_> {
    FetchScope {
        tenant,
        endpoint: None,
        links: false,
        is_private: false,
        memory_wait: Duration::from_secs(1),
    }
}

fn wanted(source: FileSource) -> WantedFile {
    WantedFile {
        position: 1,
        filename: "a.txt".to_owned(),
        source,
        content_type: None,
        digests: FileDigests::default(),
    }
}

fn by_sha256(digest: Sha256) -> FileDigests {
    FileDigests { sha256: Some(digest), md5: None }
}

fn by_url(url: &str) -> WantedFile {
    wanted(FileSource::Url(url.parse().unwrap()))
}

fn by_path(path: impl Into<PathBuf>) -> WantedFile {
    wanted(FileSource::Path(path.into()))
}

async fn one(fetcher: &FileFetcher, wanted: WantedFile) -> Result<FetchedFile, FetchError> {
    fetcher.fetch_all(&scope(&tenant()), &[wanted]).await.map(|mut files| files.remove(0))
}

#[tokio::test]
async fn files_come_from_everywhere_in_their_order() {
    let source = HttpSource::start().await;
    source.serve("/a.pdf", SourceReply::ok("%PDF-1.7"));
    source.serve("/documents", SourceReply::ok("from the endpoint"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("d.csv"), "a,b").unwrap();
    let endpoint = EndpointTarget {
        url: source.url("/documents").parse().unwrap(),
        auth: HttpAuth::Bearer("secret-token".into()),
    };
    let named = |filename: &str, source| WantedFile { filename: filename.to_owned(), ..wanted(source) };
    let all = [
        named("a.pdf", FileSource::Url(source.url("/a.pdf").parse().unwrap())),
        named("b.txt", FileSource::Content("hello".into())),
        named("c.txt", FileSource::Endpoint("doc_id=7".to_owned())),
        named("d.csv", FileSource::Path(folder.path().join("d.csv"))),
    ];
    let fetcher = fetcher(FetchConfig { folders: opened(&[folder.path()]), ..config() });
    let files =
        fetcher.fetch_all(&FetchScope { endpoint: Some(&endpoint), ..scope(&tenant()) }, &all).await.unwrap();
    let got: Vec<_> = files.iter().map(|file| (&file.bytes[..], file.content_type.as_str())).collect();
    assert_eq!(
        got,
        [
            (&b"%PDF-1.7"[..], "application/pdf"),
            (b"hello", "text/plain"),
            (b"from the endpoint", "text/plain"),
            (b"a,b", "text/csv"),
        ]
    );
    assert!(files.iter().all(|file| file.sha256 == sha256(&file.bytes)));
    let requests = source.requests();
    let post = requests.iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(post.body, b"doc_id=7");
    assert_eq!(post.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(post.header("authorization"), Some("Bearer secret-token"));
}

#[tokio::test]
async fn a_failed_fetch_names_its_field_and_says_whether_to_come_back() {
    let source = HttpSource::start().await;
    source.serve("/503", SourceReply::status(503).header("retry-after", "120"));
    source.serve("/429", SourceReply::status(429));
    source.serve("/cut", SourceReply::Cut { declared: 1_000, body: vec![1; 10] });
    source.serve("/large", SourceReply::Declared(5 * 1024 * 1024 * 1024));
    source.serve("/endless", SourceReply::Endless);
    source.serve("/gzip", SourceReply::ok("x").header("content-encoding", "gzip"));
    source.serve("/inside", SourceReply::redirect(302, "http://127.0.0.2/?token=secret"));
    source.serve("/metadata", SourceReply::redirect(302, "http://169.254.169.254/latest/meta-data/"));
    let fetcher = fetcher(config());
    for (path, transient, message) in [
        ("/404?token=secret", false, "status 404"),
        ("/503", true, "status 503"),
        ("/429", true, "status 429"),
        ("/cut", true, "broke off"),
        ("/large", false, "larger than 100000 bytes"),
        ("/endless", false, "larger than 100000 bytes"),
        ("/gzip", false, "content encoding"),
        ("/inside", false, "POSTWAY_ALLOW_PRIVATE_TARGETS"),
        ("/metadata", false, "POSTWAY_ALLOW_PRIVATE_TARGETS"),
    ] {
        let error = one(&fetcher, by_url(&source.url(path))).await.unwrap_err();
        assert_eq!((error.field.as_str(), error.transient), ("attachments[1].url", transient), "{error}");
        assert!(error.message.contains(message) && !error.message.contains("secret"), "{error}");
        assert_eq!(error.retry_after, (path == "/503").then_some(Duration::from_secs(120)));
    }
    let error = one(&fetcher, wanted(FileSource::Endpoint("id=1".to_owned()))).await.unwrap_err();
    assert!(error.field == "attachments[1].endpoint" && !error.transient, "{error}");
    let error = one(&fetcher, wanted(FileSource::Content(vec![0; 100_001].into()))).await.unwrap_err();
    assert!(error.field == "attachments[1].content" && !error.transient, "{error}");
}

#[tokio::test]
async fn slow_sources_end_at_their_deadlines() {
    let source = HttpSource::start().await;
    source.serve("/drip", SourceReply::Drip { body: vec![b'x'; 1_000], every: Duration::from_millis(20) });
    source.serve("/silent", SourceReply::Silent);
    let short = Duration::from_millis(200);
    let slow = fetcher(FetchConfig { timeout: short, ..config() });
    let silent = fetcher(FetchConfig { idle_timeout: short, ..config() });
    let all = fetcher(FetchConfig { message_timeout: short, ..config() });
    for (fetcher, path, field) in [
        (slow, "/drip", "attachments[1].url"),
        (silent, "/silent", "attachments[1].url"),
        (all, "/silent", "attachments"),
    ] {
        let started = Instant::now();
        let error = one(&fetcher, by_url(&source.url(path))).await.unwrap_err();
        assert!(error.transient && error.field == field, "{error}");
        assert!(started.elapsed() < LONG / 3);
    }
}

#[tokio::test]
async fn the_files_of_a_message_are_bounded_together() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok(vec![b'a'; 80_000]));
    source.serve("/b", SourceReply::ok(vec![b'b'; 80_000]));
    let fetcher = fetcher(config());
    let both = [by_url(&source.url("/a")), by_url(&source.url("/b"))];
    let error = fetcher.fetch_all(&scope(&tenant()), &both).await.unwrap_err();
    assert!(!error.transient && error.message.contains("150000 bytes together"), "{error}");
    // Cached files count as well.
    assert!(one(&fetcher, both[0].clone()).await.is_ok() && one(&fetcher, both[1].clone()).await.is_ok());
    let error = fetcher.fetch_all(&scope(&tenant()), &both).await.unwrap_err();
    assert!(error.message.contains("150000 bytes together"), "{error}");
    assert_eq!(
        fetcher.fetch_all(&FetchScope { links: true, ..scope(&tenant()) }, &both).await.unwrap().len(),
        2,
        "there is allowance for links"
    );
}

#[tokio::test]
async fn at_most_three_are_fetched_at_once() {
    let source = HttpSource::start().await;
    let (gate, held) = SourceReply::ok("x").held();
    let all: Vec<_> = (0..7)
        .map(|n| {
            source.serve(&format!("/{n}"), held.clone());
            by_url(&source.url(&format!("/{n}")))
        })
        .collect();
    let fetcher = Arc::new(fetcher(config()));
    let fetching = tokio::spawn(async move { fetcher.fetch_all(&scope(&tenant()), &all).await });
    source.wait_for(3, LONG).await;
    // A fourth request would have been sent with the others; this is the time it has to arrive.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(source.requests().len(), 3);
    gate.send(true).unwrap();
    assert_eq!(fetching.await.unwrap().unwrap().len(), 7);
}

#[tokio::test]
async fn one_url_is_fetched_once_for_many_messages_of_a_tenant() {
    let source = HttpSource::start().await;
    let (gate, held) = SourceReply::ok("x".repeat(90_000)).held();
    source.serve("/a", held);
    let folder = tempfile::tempdir().unwrap();
    // The file is too large for the memory, so the disk has it.
    let cached_config =
        FetchConfig { memory_bytes_max: 1_000, cache_folder: Some(folder.path().into()), ..config() };
    let fetcher = Arc::new(fetcher(cached_config));
    let fetch = || {
        let (fetcher, wanted) = (fetcher.clone(), by_url(&source.url("/a")));
        tokio::spawn(async move { one(&fetcher, wanted).await })
    };
    let many: Vec<_> = (0..50).map(|_| fetch()).collect();
    source.wait_for(1, LONG).await;
    gate.send(true).unwrap();
    for fetched in many {
        assert_eq!(fetched.await.unwrap().unwrap().bytes.len(), 90_000);
    }
    assert_eq!(source.requests().len(), 1);
    let other = "other".parse().unwrap();
    fetcher.fetch_all(&scope(&other), &[by_url(&source.url("/a"))]).await.unwrap();
    assert_eq!(source.requests().len(), 2, "tenants share nothing");
}

#[tokio::test]
async fn a_fetch_given_up_is_taken_over_by_who_waits() {
    let source = HttpSource::start().await;
    source.serve_in_turn("/a", vec![SourceReply::Silent, SourceReply::ok("x")]);
    let fetcher = Arc::new(fetcher(config()));
    let fetch = || {
        let (fetcher, wanted) = (fetcher.clone(), by_url(&source.url("/a")));
        tokio::spawn(async move { one(&fetcher, wanted).await })
    };
    let first = fetch();
    source.wait_for(1, LONG).await;
    let second = fetch();
    first.abort();
    assert_eq!(second.await.unwrap().unwrap().bytes, "x");
}

#[tokio::test]
async fn a_full_message_does_not_fail_another_that_waits_for_the_same_url() {
    let source = HttpSource::start().await;
    let (gate, held) = SourceReply::ok(vec![b'x'; 90_000]).held();
    source.serve("/a", held);
    let fetcher = Arc::new(fetcher(config()));
    let fetch = |files: Vec<WantedFile>| {
        let fetcher = fetcher.clone();
        tokio::spawn(async move { fetcher.fetch_all(&scope(&tenant()), &files).await })
    };
    let full = fetch(vec![wanted(FileSource::Content(vec![0; 80_000].into())), by_url(&source.url("/a"))]);
    source.wait_for(1, LONG).await;
    let roomy = fetch(vec![by_url(&source.url("/a"))]);
    gate.send(true).unwrap();
    assert!(full.await.unwrap().is_err());
    assert_eq!(roomy.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn what_may_not_be_stored_is_fetched_again() {
    let source = HttpSource::start().await;
    let fetcher = fetcher(config());
    for (path, control, times) in
        [("/no-store", "private, No-Store", 2), ("/old", "max-age=0", 2), ("/fine", "public, max-age=30", 1)]
    {
        source.serve(path, SourceReply::ok("x").header("cache-control", control));
        let before = source.requests().len();
        for _ in 0..2 {
            one(&fetcher, by_url(&source.url(path))).await.unwrap();
        }
        assert_eq!(source.requests().len() - before, times, "{control}");
    }
}

#[tokio::test]
async fn a_known_digest_is_found_without_fetching_also_after_a_restart() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("hello").header("cache-control", "no-store"));
    let folder = tempfile::tempdir().unwrap();
    let cached_config = || FetchConfig { cache_folder: Some(folder.path().to_owned()), ..config() };
    let with_digest = WantedFile { digests: by_sha256(sha256(b"hello")), ..by_url(&source.url("/a")) };
    for _ in 0..2 {
        let fetcher = fetcher(cached_config());
        for _ in 0..2 {
            assert_eq!(one(&fetcher, with_digest.clone()).await.unwrap().bytes, "hello");
        }
    }
    assert_eq!(source.requests().len(), 1);
    let other = "other".parse().unwrap();
    fetcher(cached_config()).fetch_all(&scope(&other), &[with_digest]).await.unwrap();
    assert_eq!(source.requests().len(), 2, "tenants share nothing");
}

#[tokio::test]
async fn nothing_of_a_sensitive_message_is_kept_or_taken_from_what_is() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("hello"));
    let folder = tempfile::tempdir().unwrap();
    let fetcher = fetcher(FetchConfig { cache_folder: Some(folder.path().to_owned()), ..config() });
    let plain = by_url(&source.url("/a"));
    let with_digest = WantedFile { digests: by_sha256(sha256(b"hello")), ..plain.clone() };
    let tenant = tenant();
    let private = FetchScope { is_private: true, ..scope(&tenant) };
    for wanted in [&plain, &with_digest] {
        fetcher.fetch_all(&private, std::slice::from_ref(wanted)).await.unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is on disk");
    for wanted in [&plain, &plain, &with_digest] {
        fetcher.fetch_all(&scope(&tenant), std::slice::from_ref(wanted)).await.unwrap();
    }
    assert_eq!(source.requests().len(), 3, "nothing was in memory either, and then it was");
    fetcher.fetch_all(&private, &[with_digest]).await.unwrap();
    assert_eq!(source.requests().len(), 4);
}

#[tokio::test]
async fn a_wrong_digest_is_refused_with_both() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("hello"));
    let fetcher = fetcher(config());
    for source in [FileSource::Url(source.url("/a").parse().unwrap()), FileSource::Content("hello".into())] {
        let error =
            one(&fetcher, WantedFile { digests: by_sha256([0xab; 32]), ..wanted(source) }).await.unwrap_err();
        assert!(error.field == "attachments[1].sha256" && !error.transient, "{error}");
        assert!(error.message.contains(&"ab".repeat(32)) && error.message.contains(&hex(&sha256(b"hello"))));
    }
    const MD5_OF_HELLO: &str = "5d41402abc4b2a76b9719d911017c592";
    let by_md5 = |first: u8| {
        let mut md5: [u8; 16] = Md5::digest(b"hello").into();
        assert_eq!(hex(&md5), MD5_OF_HELLO);
        md5[0] = first;
        let digests = FileDigests { sha256: None, md5: Some(md5) };
        WantedFile { digests, ..wanted(FileSource::Url(source.url("/a").parse().unwrap())) }
    };
    one(&fetcher, by_md5(0x5d)).await.unwrap();
    let error = one(&fetcher, by_md5(0x5e)).await.unwrap_err();
    assert!(error.field == "attachments[1].content_md5" && !error.transient, "{error}");
    assert!(error.message.contains(MD5_OF_HELLO), "{error}");
}

#[tokio::test]
async fn what_is_not_what_it_should_be_is_refused() {
    let source = HttpSource::start().await;
    source.serve("/login", SourceReply::ok("<html><body>Log in</body></html>"));
    let fetcher = fetcher(config());
    let page = WantedFile {
        filename: "invoice.pdf".to_owned(),
        content_type: Some("application/pdf".to_owned()),
        ..by_url(&source.url("/login"))
    };
    let error = one(&fetcher, page).await.unwrap_err();
    assert!(error.field == "attachments[1].content_type" && error.message.contains("web page"), "{error}");
    let program = WantedFile { filename: "invoice.exe".to_owned(), ..by_url(&source.url("/login")) };
    let error = one(&fetcher, program).await.unwrap_err();
    assert!(error.field == "attachments[1].filename" && !error.transient, "{error}");
}

#[tokio::test]
async fn files_take_of_the_common_memory_until_they_are_dropped() {
    let source = HttpSource::start().await;
    for path in ["/a", "/b", "/c"] {
        source.serve(path, SourceReply::ok(vec![b'x'; 90_000]));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), vec![b'x'; 90_000]).unwrap();
    let mut fetcher = fetcher(FetchConfig { folders: opened(&[folder.path()]), ..config() });
    fetcher.memory = FairBudget::new(2_000_000, 200_000);
    let held = one(&fetcher, by_url(&source.url("/a"))).await.unwrap();
    for wanted in [by_url(&source.url("/b")), by_path(folder.path().join("a.txt"))] {
        let refused = one(&fetcher, wanted).await.unwrap_err();
        assert!(refused.is_busy && refused.transient, "{refused:?}");
    }
    // Another tenant has its own part.
    let other = "other".parse().unwrap();
    let theirs = fetcher.fetch_all(&scope(&other), &[by_url(&source.url("/c"))]).await.unwrap();
    // A waiting message gets the memory when it is given back.
    let tenant = tenant();
    let patient = FetchScope { memory_wait: Duration::from_secs(60), ..scope(&tenant) };
    let wanted = [by_url(&source.url("/b"))];
    let (fetched, ()) = tokio::join!(fetcher.fetch_all(&patient, &wanted), async { drop(held) });
    assert_eq!(fetched.unwrap()[0].bytes.len(), 90_000);
    drop(theirs);
    assert_eq!(fetcher.memory.left(&tenant), (2_000_000, 200_000), "all of it was given back");
}
