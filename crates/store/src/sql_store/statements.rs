//! Every statement that is written once, for tests that prepare them on each database.

use crate::{
    admin::{
        accounts, audit, blocked, bulk_actions, deleted_recipients, domain_checks, keys, oauth,
        provider_hooks, quotas, routes, scoped_suppressions, sessions, streams, suppressions, suspensions,
        tenants, user_sessions, users,
    },
    blob, content,
    engine::write_probe,
    hook, inbound,
    queue::{clock_rollback, collapse, dialogue, lane_upkeep, preparation, queue_state, rate_limit},
    reading::{queue_stats, search},
    reporting,
    retention::{self, tenant_purge},
    sql::{SqlText, waiting_lanes},
};

/// Every such statement.
pub(crate) fn statements() -> Vec<SqlText> {
    let listed = [
        accounts::STATEMENTS,
        audit::STATEMENTS,
        bulk_actions::STATEMENTS,
        domain_checks::STATEMENTS,
        keys::STATEMENTS,
        oauth::STATEMENTS,
        provider_hooks::STATEMENTS,
        suspensions::STATEMENTS,
        scoped_suppressions::STATEMENTS,
        quotas::STATEMENTS,
        sessions::STATEMENTS,
        routes::STATEMENTS,
        streams::STATEMENTS,
        suppressions::STATEMENTS,
        tenants::STATEMENTS,
        users::STATEMENTS,
        user_sessions::STATEMENTS,
        &rate_limit::STATEMENTS.concat(),
        &collapse::statements(),
        &dialogue::statements(),
        preparation::STATEMENTS,
        blob::STATEMENTS,
        write_probe::STATEMENTS,
    ];
    let multi =
        preparation::multi().into_iter().chain([&deleted_recipients::DEPARTED]).chain(suspensions::multi());
    let multi: Vec<SqlText> = multi.map(|multi| multi.sample().into()).collect();
    [
        listed.concat(),
        multi,
        vec![suppressions::multi(), scoped_suppressions::multi(), accounts::multi()],
        blocked::statements(),
        clock_rollback::statements(),
        queue_stats::statements(),
        waiting_lanes::statements(),
        queue_state::statements(),
        lane_upkeep::statements(),
        tenant_purge::statements(),
        reporting::statements(),
        content::statements(),
        retention::statements(),
        search::statements(),
        inbound::statements(),
        hook::statements(),
    ]
    .concat()
}
