//! Keeping lanes in order: mail that waits under an earlier id is moved, and lanes to which no message refers
//! are removed.
//!
//! Claims and polls find an account's lanes by their ids ([`crate::sql::waiting_lanes`]). Programs before
//! schema step 19 gave lanes ids without order. What waits under such an id is found here and moved, in
//! slices: after an upgrade, while an older program is still at work, and when mail from before is replayed.
//!
//! A lane is removed in two steps, because a transaction under way may be storing mail into it. A mark says
//! since when no message refers to the lane; storing the lane takes the mark away ([`super::lane_memory`]). A
//! lane that has had its mark for [`IDLE_FOR`] is removed. Both are walks along the ids that go on where the
//! last call stopped.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use postway_domain::{Lane, LaneId, LaneRange, MessagePriority, MessageUid, Time};

use super::lane_memory::REMEMBERED_FOR;
use crate::{
    error::StoreError,
    sql::{
        Row, SqlSession, SqlText, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
        waiting_lanes::waiting_lanes_up_to,
    },
};

/// How long a lane stays without messages before it is removed.
pub(crate) const IDLE_FOR: Duration = Duration::from_secs(3_600);
/// A writer that remembers a lane has stored it, or ends its transaction, long before the lane is removed.
const _: () = assert!(IDLE_FOR.as_secs() >= 5 * REMEMBERED_FOR.as_secs());
/// Lanes of one page of a walk.
const PAGE_LANES: usize = 512;
/// Lanes whose mail one transaction moves.
pub(crate) const MOVED_LANES: usize = 64;
/// Messages of a lane that one transaction moves.
pub(crate) const MOVED_MESSAGES: u32 = 250;

static WORDS: MultiRow =
    MultiRow::new("SELECT id, tenant, account, priority, batch, destination FROM lane WHERE id IN (", 1, ")");
/// The same as accepting does.
const STORE: SqlText = SqlText::or_mysql(
    "INSERT INTO lane (id, tenant, account, priority, batch, destination) VALUES (?, ?, ?, ?, ?, ?) \
     ON CONFLICT (id) DO UPDATE SET idle_since = NULL",
    "INSERT INTO lane (id, tenant, account, priority, batch, destination) VALUES (?, ?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE idle_since = NULL",
);
const SENDING: SqlText = SqlText::same(
    "SELECT uid FROM message WHERE status = 4 AND tenant = ? AND lane = ? ORDER BY uid LIMIT 1",
);
const MOVE_ONE: SqlText = SqlText::same("UPDATE message SET lane = ? WHERE uid = ? AND due_at IS NOT NULL");
/// In the order in which mail is claimed, so that what is left waits behind what was moved.
pub(crate) const MOVE: SqlText = SqlText::or_mysql(
    "UPDATE message SET lane = ? WHERE lane = ? AND due_at IS NOT NULL AND uid IN (SELECT uid FROM (SELECT m.uid \
     FROM message m WHERE m.lane = ? AND m.due_at IS NOT NULL ORDER BY m.lane, m.due_at, m.uid LIMIT ?) AS found)",
    "UPDATE message SET lane = ? WHERE lane = ? AND due_at IS NOT NULL AND uid IN (SELECT uid FROM (SELECT m.uid \
     FROM message m FORCE INDEX (message_due) WHERE m.due_lane = ? ORDER BY m.due_lane, m.due_at, m.uid LIMIT ?) AS found)",
);
macro_rules! page {
    ($index:literal) => {
        concat!(
            "SELECT l.id, l.tenant, l.account, l.priority, l.batch, l.destination, l.idle_since, (SELECT m.uid FROM message m ",
            $index,
            "WHERE m.lane = l.id ORDER BY m.lane, m.uid LIMIT 1) FROM lane l WHERE l.id >= ? ORDER BY l.id LIMIT ?"
        )
    };
}
pub(crate) const PAGE: SqlText = SqlText::or_mysql(page!(""), page!("FORCE INDEX (message_lane) "));
static MARK: MultiRow =
    MultiRow::new("UPDATE lane SET idle_since = ? WHERE idle_since IS NULL AND id IN (", 1, ")");
macro_rules! remove {
    ($index:literal) => {
        MultiRow::new(
            concat!(
                "DELETE FROM lane WHERE idle_since <= ? AND NOT EXISTS (SELECT 1 FROM message m ",
                $index,
                "WHERE m.lane = lane.id) AND id IN ("
            ),
            1,
            ")",
        )
    };
}
static REMOVE: MultiRowSql =
    MultiRowSql { sqlite: remove!(""), postgres: remove!(""), mysql: remove!("FORCE INDEX (message_lane) ") };

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![WORDS.sample().into(), STORE, SENDING, MOVE, MOVE_ONE, PAGE, MARK.sample().into(), REMOVE.sample()]
}

/// Mail that waits in a lane under an earlier id.
#[derive(Clone, Debug)]
pub(crate) struct MisplacedLane {
    /// The id under which it waits.
    pub from: LaneId,
    /// The lane's words, which say the id that it should have.
    pub lane: Lane,
}

/// Where the walks stand. A walk that is lost begins again.
#[derive(Default)]
pub(crate) struct LaneWalks {
    waiting: Mutex<Option<LaneId>>,
    idle: Mutex<Option<LaneId>>,
}

fn taken(walk: &Mutex<Option<LaneId>>) -> LaneId {
    walk.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(LaneRange::ALL.first)
}

fn leave(walk: &Mutex<Option<LaneId>>, at: Option<LaneId>) {
    *walk.lock().unwrap_or_else(PoisonError::into_inner) = at;
}

/// What a page of a walk found to do, and whether the walk has come round.
pub(crate) struct LanePage<T> {
    pub found: T,
    pub is_last: bool,
}

/// Lanes to which no message refers: those to mark, and those to remove.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleLanes {
    pub to_mark: Vec<LaneId>,
    pub to_remove: Vec<LaneId>,
}

/// The next lanes with waiting mail whose ids are not what their words say.
pub(crate) async fn find_misplaced(
    session: &mut dyn SqlSession,
    walks: &LaneWalks,
) -> Result<LanePage<Vec<MisplacedLane>>, StoreError> {
    let range = LaneRange { first: taken(&walks.waiting), ..LaneRange::ALL };
    let lanes = waiting_lanes_up_to(session, range, PAGE_LANES).await?;
    let mut found = Vec::new();
    for (id, lane) in words(session, &lanes).await? {
        if lane.id() != id {
            found.push(MisplacedLane { from: id, lane });
        }
    }
    found.sort_by_key(|one| one.from);
    let is_last = lanes.len() < PAGE_LANES;
    leave(&walks.waiting, lanes.last().filter(|_| !is_last).and_then(|lane| lane.next()));
    Ok(LanePage { found, is_last })
}

async fn words(session: &mut dyn SqlSession, lanes: &[LaneId]) -> Result<HashMap<LaneId, Lane>, StoreError> {
    let mut words = HashMap::with_capacity(lanes.len());
    for (sql, run) in WORDS.runs(lanes) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes())).collect();
        for row in session.rows(sql.into(), ids).await? {
            words.insert(LaneId::from_bytes(row.id16(0)?), read_lane(&row)?);
        }
    }
    Ok(words)
}

fn read_lane(row: &Row) -> Result<Lane, StoreError> {
    Ok(Lane {
        tenant: row.parsed(1)?,
        account: row.parsed(2)?,
        priority: decode::coded(row.int(3)?, MessagePriority::from_code)?,
        batch: row.opt_parsed(4)?,
        destination: row.opt_parsed(5)?,
    })
}

/// Moves a slice of the waiting mail of each of these lanes; how many messages.
pub(crate) async fn move_waiting(
    session: &mut dyn SqlSession,
    misplaced: &[MisplacedLane],
) -> Result<usize, StoreError> {
    let mut moved = 0;
    for MisplacedLane { from, lane } in misplaced {
        let (from, tenant) = (from.as_bytes(), lane.tenant.as_str());
        // The next message of a lane in order is taken only while none is being sent, which is asked of one
        // id.
        if lane.is_ordered() && !session.rows(SENDING, values![tenant, from]).await?.is_empty() {
            continue;
        }
        let to = store_lane(session, lane).await?;
        moved += session.execute(MOVE, values![to.as_bytes(), from, from, MOVED_MESSAGES]).await?;
    }
    Ok(usize::try_from(moved).unwrap_or(usize::MAX))
}

/// Moves messages to other lanes if they still wait; how many.
pub(crate) async fn move_messages(
    session: &mut dyn SqlSession,
    moves: &[(MessageUid, Lane)],
) -> Result<usize, StoreError> {
    let mut moved = 0;
    for (uid, lane) in moves {
        let to = store_lane(session, lane).await?;
        moved += session.execute(MOVE_ONE, values![to.as_bytes(), uid.as_bytes()]).await?;
    }
    Ok(usize::try_from(moved).unwrap_or(usize::MAX))
}

async fn store_lane(session: &mut dyn SqlSession, lane: &Lane) -> Result<LaneId, StoreError> {
    let id = lane.id();
    let batch = lane.batch.as_ref().map(|batch| batch.as_str());
    let destination = lane.destination.as_ref().map(|destination| destination.as_str());
    let words = values![
        id.as_bytes(),
        lane.tenant.as_str(),
        lane.account.as_str(),
        lane.priority.code(),
        batch,
        destination
    ];
    session.execute(STORE, words).await?;
    Ok(id)
}

/// The next lanes to which no message refers. `keeps_earlier` leaves lanes with earlier ids alone: an older
/// program remembers its lanes for good.
pub(crate) async fn find_idle(
    session: &mut dyn SqlSession,
    walks: &LaneWalks,
    now: Time,
    keeps_earlier: bool,
) -> Result<LanePage<IdleLanes>, StoreError> {
    let first = taken(&walks.idle);
    let rows = session.rows(PAGE, values![first.as_bytes(), PAGE_LANES as u32]).await?;
    let (mut found, mut last) = (IdleLanes::default(), None);
    for row in &rows {
        let id = LaneId::from_bytes(row.id16(0)?);
        last = Some(id);
        if row.opt_bytes(7)?.is_some() || (keeps_earlier && read_lane(row)?.id() != id) {
            continue;
        }
        match row.opt_time(6)? {
            None => found.to_mark.push(id),
            Some(since) if since <= now.minus(IDLE_FOR) => found.to_remove.push(id),
            Some(_) => {}
        }
    }
    let is_last = rows.len() < PAGE_LANES;
    leave(&walks.idle, last.filter(|_| !is_last).and_then(|lane| lane.next()));
    Ok(LanePage { found, is_last })
}

/// Marks lanes as idle, and removes those that have been so for long enough; how many it removed.
pub(crate) async fn retire_lanes(
    session: &mut dyn SqlSession,
    idle: &IdleLanes,
    now: Time,
) -> Result<usize, StoreError> {
    let ids = |run: &[LaneId]| run.iter().map(|lane| Value::from(lane.as_bytes())).collect::<Vec<_>>();
    for (sql, run) in MARK.runs(&idle.to_mark) {
        session.execute(sql.into(), [values![now], ids(run)].concat()).await?;
    }
    let mut removed = 0;
    for (sql, run) in REMOVE.runs(&idle.to_remove) {
        removed += session.execute(sql, [values![now.minus(IDLE_FOR)], ids(run)].concat()).await?;
    }
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}
