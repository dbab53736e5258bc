//! What lists, counts and searches cost among many messages, and what the text blocks cost that searches read.
//!
//! Fills a store (SQLite) with a million messages of one tenant, half of them in three accounts with tags, and prints
//! how long each view takes the store, as the median and the worst of some calls. `POSTWAY_BENCH_MESSAGES` chooses
//! another number. `POSTWAY_BENCH_DATABASE=postgres://…` (or `mysql://…`) names an empty database to use instead.

#[path = "../claim/work.rs"]
#[allow(dead_code, reason = "the bench of claims uses the rest")]
mod work;

use std::time::{Duration, Instant};

use anyhow::Context;
use postway_domain::{EventKind, MessageState, MessageStatus, TenantId, Time};
use postway_store::record::{AccountKey, MessageFilter, MessageKey, MetadataField, NewMessage};
use work::Times;

const MESSAGES: usize = 1_000_000;
/// Messages accepted in one transaction: about as many as under load.
const ACCEPTED: usize = 64;
const ROUNDS: usize = 7;
const COUNTED_MAX: u32 = 100_000;
const PAGE: u32 = 50;
const WORDS: [&str; 8] =
    ["Your order", "Invoice", "Password reset", "Welcome", "Shipped:", "Reminder", "Receipt", "Newsletter"];

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let messages = match std::env::var("POSTWAY_BENCH_MESSAGES") {
        Ok(number) => number.parse().context("POSTWAY_BENCH_MESSAGES is a number")?,
        Err(_) => MESSAGES,
    };
    tokio::runtime::Runtime::new()?.block_on(measure(messages))
}

/// The processor time of this process.
fn processor_time() -> Duration {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Duration::from_secs_f64(ticks / TICKS_PER_SECOND)
}

/// What this process has handed to the kernel to write, in bytes.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The n-th message: a subject with its number, one of 50,000 addresses in 400 domains, and an order.
fn message(key: &AccountKey, index: usize) -> anyhow::Result<NewMessage> {
    let state = match index % 100 {
        0 => MessageState::Invalid,
        1 => MessageState::Ready,
        2..=4 => MessageState::Suppressed,
        _ => MessageState::Sent,
    };
    let mut message = work::message(work::lane(key, None), state, index)?;
    message.recipients[0].address =
        format!("reader.{}@mail{}.example", index * 7_919 % 50_000, index % 400).parse()?;
    message.content.subject = format!("{} {index} for you", WORDS[index % WORDS.len()]);
    message.content.metadata = Some(format!(r#"{{"order":"A-{index}","shop":"s{}"}}"#, index % 20));
    message.content.tags = vec![format!("kind-{}", index % 10)];
    Ok(message)
}

async fn measure(messages: usize) -> anyhow::Result<()> {
    let bench = work::open().await?;
    let key = bench.tenant("acme").await?;
    let began = (Instant::now(), processor_time(), written());
    for start in (0..messages).step_by(ACCEPTED) {
        let some = (start..(start + ACCEPTED).min(messages)).map(|index| message(&key, index));
        bench.store.accept(some.collect::<anyhow::Result<_>>()?).await?;
    }
    cost("accepted", messages, began);
    without(&bench, &key.tenant, messages).await?;
    let began = (Instant::now(), processor_time(), written());
    let mut now = work::now();
    // Blocks are planned in one round, and filled a minute later.
    for _ in 0..2 {
        while bench.store.tend_text_blocks(now).await?.done > 0 {}
        now = now.plus(Duration::from_secs(61));
    }
    cost("text blocks", messages, began);
    views(&bench, &key.tenant, messages).await
}

fn cost(what: &str, messages: usize, began: (Instant, Duration, u64)) {
    let each = |number: f64| number / messages as f64;
    let (wall, processor) = (began.0.elapsed(), processor_time() - began.1);
    println!(
        "{what}: {messages} messages in {:.1} s; for each {:.1} µs of a processor, {:.0} bytes written",
        wall.as_secs_f64(),
        each(processor.as_secs_f64() * 1e6),
        each((written() - began.2) as f64),
    );
}

fn text(text: &str) -> MessageFilter {
    MessageFilter { text: Some(text.to_owned()), ..MessageFilter::default() }
}

/// One page of a search for a text, before there are blocks.
async fn without(bench: &work::Bench, tenant: &TenantId, messages: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let (filter, mut before, mut pages) = (text(&format!(" {} for", messages / 3)), None, 0);
    loop {
        let page = bench.store.search(tenant, &filter, before, PAGE).await?;
        pages += 1;
        before = page.next;
        if !page.messages.is_empty() || before.is_none() {
            break;
        }
    }
    println!("a subject in the middle, without blocks: {:?} in {pages} calls", began.elapsed());
    Ok(())
}

async fn views(bench: &work::Bench, tenant: &TenantId, messages: usize) -> anyhow::Result<()> {
    let field = |key: &str, value: String| Some(MetadataField { key: key.to_owned(), value });
    let some = |text: &str| Some(text.to_owned());
    let all = MessageFilter::default;
    let since = |back: i64| Some(Time::from_millis(work::now().as_millis() - 100_000_000 + back));
    let old = messages as i64 / 10;
    let filters: Vec<(&str, MessageFilter)> = vec![
        ("all", all()),
        ("state: sent", MessageFilter { status: Some(MessageStatus::Sent), ..all() }),
        ("state: invalid", MessageFilter { status: Some(MessageStatus::Invalid), ..all() }),
        ("waiting", MessageFilter { waits: true, ..all() }),
        ("account", MessageFilter { account: Some("relay".parse()?), ..all() }),
        ("tag", MessageFilter { tag: some("kind-3"), ..all() }),
        ("tag and state", MessageFilter { tag: some("kind-1"), status: Some(MessageStatus::Ready), ..all() }),
        ("address", MessageFilter { recipient: some("reader.7919@mail1.example"), ..all() }),
        ("outcome nobody has", MessageFilter { outcome: Some(EventKind::Bounced), ..all() }),
        ("error code nobody has", MessageFilter { error_code: some("smtp_550"), ..all() }),
        ("the oldest tenth", MessageFilter { until: since(old), ..all() }),
        ("text: newest", text("for you")),
        ("text: a subject, newest tenth", text(&format!(" {} for", messages * 19 / 20))),
        ("text: a subject, oldest tenth", text(&format!(" {} for", messages / 20))),
        ("text: a part of an address", text("er.123@")),
        ("text: in no message", text("nobody wrote this")),
        ("text: one letter", text("z")),
        ("text and state", MessageFilter { status: Some(MessageStatus::Invalid), ..text("password reset") }),
        ("domain", MessageFilter { domain: some("mail77.example"), ..all() }),
        ("domain nobody has", MessageFilter { domain: some("nowhere.example"), ..all() }),
        ("metadata", MessageFilter { metadata: field("order", format!("A-{}", messages / 20)), ..all() }),
        ("metadata nobody has", MessageFilter { metadata: field("order", "none".to_owned()), ..all() }),
    ];
    println!(
        "\n{:<32} {:>8} {:>10} {:>10} {:>12} {:>10}",
        "view", "rows", "median", "worst", "counted", "median"
    );
    for (name, filter) in &filters {
        let (mut times, mut counts) = (Vec::new(), Vec::new());
        let (mut rows, mut counted) = (0, String::new());
        let mut is_last = true;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let page = bench.store.search(tenant, filter, None, PAGE).await?;
            times.push(began.elapsed());
            (rows, is_last) = (page.messages.len(), page.next.is_none());
            let began = Instant::now();
            let count = bench.store.count(tenant, filter, COUNTED_MAX).await?;
            counts.push(began.elapsed());
            counted = format!("{}{}", count.messages, if count.is_more { "+" } else { "" });
        }
        let worst = times.iter().max().copied().unwrap_or_default();
        let rows = format!("{rows}{}", if is_last { "" } else { "+" });
        let (page, count) = (Times::of(times).p50(), Times::of(counts).p50());
        println!("{name:<32} {rows:>8} {:>10} {:>10} {counted:>12} {:>10}", ms(page), ms(worst), ms(count));
    }
    single(bench, tenant).await
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// What is no list.
async fn single(bench: &work::Bench, tenant: &TenantId) -> anyhow::Result<()> {
    let newest = bench.store.search(tenant, &MessageFilter::default(), None, 1).await?;
    let uid = newest.messages.first().context("there are messages")?.uid;
    let now = work::now();
    let print = |name: &str, began: Instant| println!("{name:<32} {:>19}", ms(began.elapsed()));
    for _ in 0..2 {
        let began = Instant::now();
        bench.store.message(tenant, &MessageKey::Uid(uid)).await?;
        print("one message", began);
        let began = Instant::now();
        bench.store.stats(Some(tenant), now).await?;
        print("the queue of a tenant", began);
        let began = Instant::now();
        bench.store.held(tenant, now).await?;
        print("what is held", began);
        let began = Instant::now();
        bench.store.statistics(tenant, Time::from_millis(0), now).await?;
        print("statistics", began);
        let began = Instant::now();
        bench.store.batches(tenant, None, PAGE).await?;
        print("batches", began);
    }
    Ok(())
}
