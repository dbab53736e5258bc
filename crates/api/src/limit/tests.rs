//! Limits that several nodes share, and requests in progress.

use postway_domain::{Time, id::Incarnation};
use postway_store::record::NodeRecord;

use super::*;

const CLIENT: &str = "192.0.2.1";

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

fn incarnation(number: u8) -> Incarnation {
    Incarnation::from_bytes([number; 16])
}

fn node(number: u8) -> NodeRecord {
    NodeRecord {
        incarnation: incarnation(number),
        identity: [number; 16],
        slot: i64::from(number),
        name: format!("node-{number}"),
        address: String::new(),
        version: String::new(),
        started_at: Time::from_millis(0),
        beat: 1,
        beat_at: Time::from_millis(0),
    }
}

fn door(address: SubjectLimits, roster: LivenessRoster) -> Arc<DoorLimits> {
    let limits = RequestLimits { address, ..RequestLimits::default() };
    Arc::new(DoorLimits::new(limits, Arc::new(roster)))
}

/// A request that was let in, or the status of its refusal.
fn ask(door: &Arc<DoorLimits>, client: &str) -> Result<RequestTicket, u16> {
    let mut request = axum::http::Request::new(()).into_parts().0;
    request.extensions.insert(RequestOrigin::direct(client.parse().unwrap()));
    match door.begin(&mut request) {
        Ok(ticket) => Ok(ticket.unwrap()),
        Err(refused) => Err(refused.status().as_u16()),
    }
}

fn accepted(door: &Arc<DoorLimits>) -> usize {
    (0..100).take_while(|_| ask(door, CLIENT).is_ok()).count()
}

#[test]
fn nodes_share_a_limit_and_the_share_of_one_that_died_is_the_others() {
    let requests = Some(WindowLimit { quota: number(10), window: Duration::from_secs(3_600) });
    let limits = SubjectLimits { requests, ..SubjectLimits::default() };
    let nodes: Vec<Arc<DoorLimits>> = (1..=3)
        .map(|own| {
            let roster = LivenessRoster::new(incarnation(own), true);
            roster.observe(&[node(1), node(2), node(3)]);
            door(limits, roster)
        })
        .collect();
    let each: Vec<usize> = nodes.iter().map(accepted).collect();
    assert_eq!(
        each,
        [4, 4, 4],
        "a third of ten, rounded up: together the limit and less than one for each node"
    );
    nodes[0].roster.bury(&[incarnation(2), incarnation(3)]);
    assert_eq!(accepted(&nodes[0]), 6, "alone it allows all ten");
    let refused = ask(&nodes[0], CLIENT);
    assert_eq!(refused.err(), Some(429));
}

#[test]
fn requests_in_progress_are_counted_until_their_answer_and_each_client_has_its_own() {
    let limits = SubjectLimits { concurrent: Some(number(2)), ..SubjectLimits::default() };
    let door = door(limits, LivenessRoster::new(incarnation(1), false));
    let (one, two) = (ask(&door, CLIENT).ok(), ask(&door, CLIENT).ok());
    assert!(one.is_some() && two.is_some());
    assert_eq!(ask(&door, CLIENT).err(), Some(429));
    assert!(ask(&door, "192.0.2.2").is_ok(), "another client is not held up");
    assert!(
        ask(&door, "127.0.0.1").is_ok() && ask(&door, "127.0.0.1").is_ok() && ask(&door, "127.0.0.1").is_ok()
    );
    drop(one);
    let three = ask(&door, CLIENT);
    assert!(three.is_ok(), "an answer makes room");
    assert_eq!(ask(&door, CLIENT).err(), Some(429));
    drop((two, three));
    assert!(lock(&door.addresses.in_progress).is_empty(), "nothing is remembered of who asks nothing");
}
