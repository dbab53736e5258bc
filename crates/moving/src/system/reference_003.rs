//! 003: accounts and tokens stay in their tables, which `postway outbox install --preset accounts` takes
//! over. This module counts what it will find.

use serde_json::{Map, json};

use super::{
    CarriedKind, MovingOptions, MovingVerdict, OldTableRow, RowFormat, SystemLayout, carry, column, counted,
    from, stay, wrong,
};
use crate::{
    column::{OldDatabaseDialect, OldTableSchema, needed, optional, quoted},
    database::OldDatabase,
    error::MovingError,
    verdict::{RowFault, RowLocation},
};

const ACCOUNTS: OldTableSchema = OldTableSchema {
    name: "accounts",
    columns: &[
        needed(&["id"]),
        needed(&["email"]),
        needed(&["status"]),
        needed(&["login"]),
        needed(&["created_at"]),
        needed(&["status_changed_at"]),
        needed(&["activated_at"]),
        needed(&["suspended_at"]),
        needed(&["unsuspended_at"]),
    ],
    passed_over: &[],
};

const TOKENS: OldTableSchema = OldTableSchema {
    name: "tokens",
    columns: &[
        needed(&["id"]),
        needed(&["action"]),
        needed(&["account"]),
        optional(&["secret"]),
        optional(&["code"]),
        needed(&["expires_at"]),
        needed(&["consumed_at"]),
        needed(&["created_at"]),
    ],
    passed_over: &[],
};

const JOBS: OldTableSchema = OldTableSchema {
    name: "jobs",
    columns: &[needed(&["job_type"]), needed(&["last_seq"])],
    passed_over: &[],
};

/// Seconds since 1970 in PostgreSQL.
const NOW: &str = "EXTRACT(EPOCH FROM NOW())";

pub(super) async fn add_steps(
    database: &mut OldDatabase,
    layout: &mut SystemLayout,
) -> Result<(), MovingError> {
    let dialect = database.dialect();
    if dialect != OldDatabaseDialect::Postgres {
        return Err(MovingError::Option(
            "this system is on PostgreSQL: give a postgres://… address".to_owned(),
        ));
    }
    let accounts = layout.find_needed(database, ACCOUNTS).await?;
    let tokens = layout.find_needed(database, TOKENS).await?;
    let jobs = layout.find_needed(database, JOBS).await?;
    let (Some(accounts), Some(tokens), Some(jobs)) = (accounts, tokens, jobs) else { return Ok(()) };
    let of = |name: &str| column(&tokens, dialect, name);
    layout.add_count(
        ACCOUNTS.name,
        column(&accounts, dialect, "status"),
        &from(&accounts, dialect),
        accounts_there,
    );
    let cursor = format!(
        "COALESCE((SELECT MAX({}) FROM {} j), 0)",
        jobs.sql(dialect, "j", "last_seq"),
        quoted(dialect, JOBS.name)
    );
    let joined = format!(
        "{} LEFT JOIN {} a ON {} = {}",
        from(&tokens, dialect),
        quoted(dialect, ACCOUNTS.name),
        accounts.sql(dialect, "a", "id"),
        of("account")
    );
    let status = accounts.sql(dialect, "a", "status");
    let class = format!(
        "CASE WHEN {} IS NOT NULL THEN 'consumed' WHEN {} <= {NOW} THEN 'expired' WHEN {} <= {cursor} THEN 'mailed' \
         WHEN {status} IS NULL THEN 'lost' \
         WHEN ({action} = 'activation' AND {status} = 'provisioned') \
           OR ({action} = 'password_recovery' AND {status} = 'active') THEN 'waiting' ELSE 'held' END",
        of("consumed_at"),
        of("expires_at"),
        of("id"),
        action = of("action"),
    );
    layout.add_count(TOKENS.name, format!("({class})"), &joined, tokens_there);
    let waiting = format!("{joined} WHERE ({class}) IN ('waiting', 'lost') ORDER BY {}", of("id"));
    let columns = vec![
        ("id", of("id")),
        ("account", of("account")),
        ("account_id", accounts.sql(dialect, "a", "id")),
        ("email", accounts.sql(dialect, "a", "email")),
    ];
    layout.add_rows(TOKENS.name, columns, waiting, waiting_token);
    Ok(())
}

fn accounts_there(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let (status, count) = counted(&mut row);
    stay(ACCOUNTS.name, status, count, "stay in their table, which is taken over where it is")
}

fn tokens_there(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let (class, count) = counted(&mut row);
    let why = match class.as_str() {
        "consumed" | "expired" => "stay in their table and are not mailed again",
        "mailed" => "are behind the cursor, count as mailed, and are not mailed again",
        "held" => "are mailed once their account is as it must be, unless they expire before",
        // These rows are read one by one.
        _ => return Vec::new(),
    };
    stay(TOKENS.name, class, count, why)
}

fn waiting_token(mut row: OldTableRow, _: &MovingOptions) -> Vec<MovingVerdict> {
    let id = row.needed("id");
    if row.text("account_id").is_none() {
        let account = row.text("account").unwrap_or_default();
        row.refuse("account", format!("there is no account {account}: remove the token"));
    } else if !row.text("email").is_some_and(|email| email.contains('@')) {
        let place =
            RowLocation { table: ACCOUNTS.name.to_owned(), key: row.text("account").unwrap_or_default() };
        return vec![MovingVerdict::Wrong(RowFault::new(&place, "email", "is no address: correct it there"))];
    }
    if !row.is_sound() {
        return wrong(row);
    }
    carry(row, CarriedKind::Token, RowFormat::Ours, None, Map::from_iter([("id".to_owned(), json!(id))]))
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{carried, row},
        *,
    };

    #[test]
    fn a_waiting_token_needs_an_account_with_an_address() {
        let judged =
            |cells: &[(&'static str, &str)]| waiting_token(row("tokens", cells), &MovingOptions::default());
        carried(judged(&[("id", "1"), ("account", "7"), ("account_id", "7"), ("email", "a@x.example")]));
        let lost = judged(&[("id", "1"), ("account", "7")]);
        assert!(matches!(&lost[..], [MovingVerdict::Wrong(fault)] if fault.field == "account"), "{lost:?}");
        let nowhere = judged(&[("id", "1"), ("account", "7"), ("account_id", "7"), ("email", "none")]);
        assert!(
            matches!(&nowhere[..], [MovingVerdict::Wrong(fault)] if fault.place.table == "accounts"),
            "{nowhere:?}"
        );
    }
}
