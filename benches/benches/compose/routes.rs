//! What a route costs at the door: the choice among 50 routes of which the last one matches, and of which
//! none does, and what lies before it. The lists of recipients are of one and of a hundred.

use std::{hint::black_box, time::Instant};

use postway_domain::{
    MessageUid,
    id::BatchCode,
    route::{RouteConditions, RouteFacts, choose_by_weight},
};

/// The routes of the tenant, and how often they are asked.
const ROUTES: usize = 50;
const RUNS: u32 = 200_000;

pub fn print() -> anyhow::Result<()> {
    let conditions = |number: usize| {
        let json = serde_json::json!({
            "sender_domains": [format!("*.brand{number}.example"), format!("brand{number}.example")],
            "recipient_domains": [format!("partner{number}.example")],
            "tags": [format!("tag-{number}"), "promo"], "streams": [format!("stream-{number}")],
        });
        serde_json::from_value::<RouteConditions>(json)
    };
    let routes = (0..ROUTES).map(conditions).collect::<Result<Vec<_>, _>>()?;
    let (tags, batch) = (["promo".to_owned(), "x".to_owned()], "stream-49:2026".parse::<BatchCode>()?);
    for (what, domain, recipients) in [
        ("the last of 50 routes, one recipient", "news.brand49.example", 1),
        ("none of 50 routes, one recipient", "news.other.example", 1),
        ("the last of 50 routes, 100 recipients", "news.brand49.example", 100),
    ] {
        let began = Instant::now();
        for number in 0..RUNS {
            let facts = RouteFacts {
                sender_domain: Some(black_box(domain)),
                recipient_domains: vec!["partner49.example"; recipients],
                tags: &tags,
                batch: Some(&batch),
                ..RouteFacts::default()
            };
            let found = routes.iter().position(|route| route.match_all(&facts));
            let uid = MessageUid::from_bytes(u128::from(number).to_be_bytes());
            black_box((found, choose_by_weight(&[3, 1, 1], uid, 0)));
        }
        let each = began.elapsed() / RUNS;
        println!("{what:<44} {:>6} ns", each.as_nanos());
    }
    Ok(())
}
