//! Fragments that several views share, by the names that the texts have in braces.

use postway_domain::MessageStatus;

/// Parts that several views share. Codes of states, kinds and notifications are those of the domain; see the
/// assertions below.
pub(crate) const SHARED: [(&str, &str); 14] = [
    ("wait", "CASE WHEN m.status = 3 THEN COALESCE(m.wait, 2) ELSE 0 END"),
    (
        "reason",
        "COALESCE(NULLIF({json:m.error:message}, ''), {json:m.error:code}, \
         CASE m.status WHEN 9 THEN 'suppressed' WHEN 10 THEN 'cancelled' WHEN 11 THEN 'expired' WHEN 12 THEN 'captured' END)",
    ),
    ("subject", "CASE WHEN c.\"sensitive\" = 0 THEN c.subject ELSE '[hidden]' END"),
    (
        "first_recipient",
        "(SELECT r.address FROM {recipient} r WHERE r.uid = m.uid ORDER BY r.position LIMIT 1)",
    ),
    // The latest bounce, and the data of its event.
    ("from_bounce", "FROM {event} e WHERE e.uid = m.uid AND e.kind = 19 ORDER BY e.seq DESC LIMIT 1"),
    // The time that a message waits for, or waited for before it was suspended.
    (
        "due",
        "CASE WHEN m.status = 3 THEN COALESCE(m.due_at, (SELECT p.due_at FROM {preparation} p WHERE p.uid = m.uid)) END",
    ),
    // ACKNOWLEDGED: a subscriber confirmed the final event and no notification is pending.
    (
        "told",
        "CASE WHEN m.status IN ({ended}) THEN (SELECT CASE WHEN MAX(CASE WHEN n.state = 1 THEN 1 ELSE 0 END) = 1 THEN 1 \
         WHEN MIN(n.state) = 3 AND MAX(n.state) = 3 AND MAX(CASE WHEN n.kind = 12 OR (n.kind = 7 AND m.status = 5) \
         OR (n.kind IN (3, 8, 13, 14, 15, 31) AND m.status <> 5) THEN 1 ELSE 0 END) = 1 THEN 2 ELSE 0 END \
         FROM {notification} n WHERE n.uid = m.uid) ELSE 0 END",
    ),
    // The latest event about the callback, as `postway_domain::reference::callback_progress_000` has it.
    (
        "called",
        "CASE WHEN m.status IN ({ended}) THEN CASE (SELECT e.kind FROM {event} e WHERE e.uid = m.uid \
         AND e.kind IN (27, 28, {moves}) ORDER BY e.seq DESC LIMIT 1) WHEN 28 THEN 2 WHEN 27 THEN \
         CASE WHEN EXISTS (SELECT 1 FROM {notification} n WHERE n.uid = m.uid AND n.state < 3) THEN 1 ELSE 0 END \
         ELSE 0 END ELSE 0 END",
    ),
    // The events of callbacks, which do not change the message.
    ("calls", "FROM {event} e WHERE e.uid = m.uid AND e.kind IN (27, 28)"),
    (
        "standing",
        "CASE WHEN m.status = 2 OR {due} <= {now} THEN CASE WHEN EXISTS (SELECT 1 FROM {suspension} s \
         WHERE s.tenant = m.tenant AND (s.kind = 0 OR (s.kind = 1 AND s.code = l.batch))) THEN 1 \
         WHEN m.status = 3 THEN 4 ELSE 0 END WHEN {told} = 2 THEN 3 \
         WHEN m.status = 5 AND EXISTS (SELECT 1 FROM {event} e WHERE e.uid = m.uid AND e.kind = 19) THEN 2 ELSE 0 END",
    ),
    // An attempt was made and took no retry: it is ready again, or in doubt and sent again.
    (
        "trial",
        "CASE WHEN m.status = 2 AND m.attempt > 0 THEN 1 WHEN m.status = 8 AND m.due_at IS NOT NULL THEN 1 ELSE 0 END",
    ),
    // `scheduled` and `ready`: whether a preparation or an attempt came before, and after `ready` whether
    // another follows. `in_doubt`: whether it is sent again. `replayed`: whether it had been refused.
    // `resolved`: the result follows from the next event, or from the state of the message. A call: the final
    // state of the message when it was made.
    (
        "sense",
        "CASE WHEN e.kind = 5 AND EXISTS (SELECT 1 FROM {event} p WHERE p.uid = e.uid AND p.seq = e.seq - 1 AND p.kind = 32) THEN 4 \
         WHEN e.kind IN (4, 5) THEN CASE WHEN (e.kind = 5 OR {flag:e.data:will_retry}) AND EXISTS (SELECT 1 FROM {event} p \
         WHERE p.uid = e.uid AND p.seq < e.seq AND p.kind IN (6, 11)) THEN 3 ELSE 0 END \
         WHEN e.kind = 10 THEN CASE WHEN {flag:e.data:will_retry} THEN 3 ELSE 0 END \
         WHEN e.kind = 16 THEN CASE (SELECT p.kind FROM {event} p WHERE p.uid = e.uid AND p.seq < e.seq \
         AND p.kind IN ({moves}) ORDER BY p.seq DESC LIMIT 1) WHEN 3 THEN 4 ELSE 0 END \
         WHEN e.kind = 12 THEN CASE COALESCE((SELECT n.kind FROM {event} n WHERE n.uid = e.uid AND n.seq > e.seq \
         AND n.kind IN (6, 11, 13, 14, 15, 16) ORDER BY n.seq LIMIT 1), -m.status) \
         WHEN -5 THEN 1 WHEN -6 THEN 2 WHEN 16 THEN 2 ELSE 0 END \
         WHEN e.kind IN (27, 28) THEN CASE (SELECT p.kind FROM {event} p WHERE p.uid = e.uid AND p.seq < e.seq \
         AND p.kind IN ({moves}) ORDER BY p.seq DESC LIMIT 1) WHEN 7 THEN 1 WHEN 8 THEN 2 \
         WHEN 12 THEN CASE WHEN m.status = 5 THEN 1 ELSE 2 END WHEN 13 THEN 2 WHEN 14 THEN 2 WHEN 15 THEN 2 WHEN 31 THEN 2 \
         ELSE 0 END ELSE 0 END",
    ),
    // A removed message is identified by its tombstone. Without one it had ended, because nothing else is
    // removed, and its final state is unknown. The highest value covers all of them.
    (
        "forwarded",
        "CASE WHEN i.state = 2 THEN COALESCE((SELECT MAX(CASE WHEN COALESCE(o.status, t.status) IS NULL THEN 2 \
         WHEN COALESCE(o.status, t.status) = 5 THEN 1 WHEN COALESCE(o.status, t.status) IN ({unsent}) THEN 4 ELSE 3 END) FROM {inbound_message} f \
         LEFT JOIN {message} o ON o.uid = f.message LEFT JOIN {tombstone} t ON t.uid = f.message \
         WHERE f.uid = i.uid), 0) ELSE 0 END",
    ),
    (
        "forward_error",
        "(SELECT COALESCE({json:o.error:message}, {json:o.error:code}, CASE o.status WHEN 12 THEN 'captured' END) FROM {inbound_message} f \
         JOIN {message} o ON o.uid = f.message WHERE f.uid = i.uid AND o.status IN ({unsent}) LIMIT 1)",
    ),
];

const _: () = {
    use postway_domain::{EventKind as Kind, InboundState, message::ScheduleReason};

    use crate::record::NotificationState;
    assert!(
        MessageStatus::Ready as i64 == 2
            && MessageStatus::Scheduled as i64 == 3
            && MessageStatus::Sent as i64 == 5
    );
    assert!(
        MessageStatus::Failed as i64 == 6
            && ScheduleReason::Retry as i64 == 2
            && InboundState::Routed as i64 == 2
    );
    assert!(
        MessageStatus::Suppressed as i64 == 9
            && MessageStatus::Cancelled as i64 == 10
            && MessageStatus::Expired as i64 == 11
    );
    assert!(MessageStatus::Captured as i64 == 12 && Kind::Captured as i64 == 31);
    assert!(NotificationState::Calling as i64 == 1 && NotificationState::Acknowledged as i64 == 3);
    assert!(MessageStatus::InDoubt as i64 == 8 && Kind::Ready as i64 == 4 && Kind::InDoubt as i64 == 10);
    assert!(Kind::Invalid as i64 == 3 && Kind::Scheduled as i64 == 5 && Kind::Sending as i64 == 6);
    assert!(Kind::Sent as i64 == 7 && Kind::Failed as i64 == 8 && Kind::Resent as i64 == 11);
    assert!(Kind::Resolved as i64 == 12 && Kind::Cancelled as i64 == 13 && Kind::Expired as i64 == 14);
    assert!(Kind::Suppressed as i64 == 15 && Kind::Replayed as i64 == 16 && Kind::Bounced as i64 == 19);
    assert!(
        Kind::PecAccepted as i64 == 22 && Kind::PecDelivered as i64 == 24 && Kind::PecFailed as i64 == 25
    );
    assert!(Kind::Validating as i64 == 32);
    assert!(Kind::PecTimeout as i64 == 26 && Kind::Notifying as i64 == 27 && Kind::Notified as i64 == 28);
};
