//! Templates: versions that are created and deleted, never changed.

use postway_domain::{Template, TemplateName, TenantId};

use crate::{
    error::StoreError,
    record::ChangeResult,
    sql::{Row, SqlSession, SqlText, is_new, values, was_there},
};

/// The most names that one statement lists. Databases bound the depth of a recursion, MySQL and MariaDB at
/// 1,000.
const NAMES_MAX: u32 = 500;

macro_rules! select {
    ($before:literal, $from:literal) => {
        SqlText::same(concat!(
            $before,
            "SELECT t.tenant, t.name, t.version, t.subject, t.html, t.text, t.mjml, t.description, t.sample, \
             t.created_at, t.layout, t.inline_css FROM ",
            $from
        ))
    };
}

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO template (tenant, name, version, subject, html, text, mjml, description, sample, created_at, \
     layout, inline_css) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO template (tenant, name, version, subject, html, text, mjml, description, sample, created_at, \
     layout, inline_css) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);
const IS_THERE: SqlText =
    SqlText::same("SELECT version FROM template WHERE tenant = ? AND name = ? AND version = ?");
// Locked, so that a concurrent deletion either waits for the new version, or is seen here.
const NEWEST: SqlText = SqlText::of_each(
    "SELECT version FROM template WHERE tenant = ? AND name = ? ORDER BY version DESC LIMIT 1",
    "SELECT version FROM template WHERE tenant = ? AND name = ? ORDER BY version DESC LIMIT 1 FOR UPDATE",
    "SELECT version FROM template WHERE tenant = ? AND name = ? ORDER BY version DESC LIMIT 1 FOR UPDATE",
);
const DROP_OLD: SqlText =
    SqlText::same("DELETE FROM template WHERE tenant = ? AND name = ? AND version <= ?");
const DELETE: SqlText = SqlText::same("DELETE FROM template WHERE tenant = ? AND name = ?");
const FIND: SqlText = select!("", "template t WHERE t.tenant = ? AND t.name = ? AND t.version = ?");
const LATEST: SqlText =
    select!("", "template t WHERE t.tenant = ? AND t.name = ? ORDER BY t.version DESC LIMIT 1");
const VERSIONS: SqlText = select!(
    "",
    "template t WHERE t.tenant = ? AND t.name = ? AND t.version < ? ORDER BY t.version DESC LIMIT ?"
);
/// Goes from name to next name by the primary key, so that older versions are skipped unread.
pub(crate) const LIST: SqlText = select!(
    "WITH RECURSIVE page (name, place) AS (\
     SELECT MIN(f.name), 1 FROM template f WHERE f.tenant = ? AND f.name > ? \
     UNION ALL \
     SELECT (SELECT MIN(n.name) FROM template n WHERE n.tenant = ? AND n.name > page.name), page.place + 1 \
     FROM page WHERE page.name IS NOT NULL AND page.place < ?) ",
    "page JOIN template t ON t.tenant = ? AND t.name = page.name AND t.version = \
     (SELECT MAX(v.version) FROM template v WHERE v.tenant = ? AND v.name = page.name) ORDER BY page.place"
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[CREATE, IS_THERE, NEWEST, DROP_OLD, DELETE, FIND, LATEST, VERSIONS, LIST];

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    template: &Template,
) -> Result<ChangeResult, StoreError> {
    let (tenant, name, version) = (template.tenant.as_str(), template.name.as_str(), template.version);
    let rows = session.rows(NEWEST, values![tenant, name]).await?;
    let newest = rows.first().map_or(Ok(0), |row| row.int(0))?;
    if version != newest + 1 {
        let is_there = !session.rows(IS_THERE, values![tenant, name, version]).await?.is_empty();
        return Ok(if is_there { ChangeResult::Exists } else { ChangeResult::Stale });
    }
    let values = values![
        tenant,
        name,
        version,
        template.subject.as_str(),
        template.html.as_deref(),
        template.text.as_deref(),
        template.mjml.as_deref(),
        template.description.as_deref(),
        template.sample.as_deref(),
        template.created_at,
        template.layout.as_ref().map(TemplateName::as_str),
        i64::from(template.inline_css),
    ];
    let created = session.insert(CREATE, values).await.map(is_new)?;
    if created == ChangeResult::Done && version > Template::VERSIONS_MAX {
        session.execute(DROP_OLD, values![tenant, name, version - Template::VERSIONS_MAX]).await?;
    }
    Ok(created)
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    name: &TemplateName,
) -> Result<ChangeResult, StoreError> {
    let mut deleted = 0;
    loop {
        // Read again after having waited for the lock: there may be a version that this statement did not
        // see.
        match session.execute(DELETE, values![tenant.as_str(), name.as_str()]).await? {
            0 => return Ok(was_there(deleted)),
            versions => deleted += versions,
        }
    }
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    name: &TemplateName,
    version: Option<i64>,
) -> Result<Option<Template>, StoreError> {
    let rows = match version {
        Some(version) => session.rows(FIND, values![tenant.as_str(), name.as_str(), version]).await?,
        None => session.rows(LATEST, values![tenant.as_str(), name.as_str()]).await?,
    };
    rows.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: Option<&TemplateName>,
    limit: u32,
) -> Result<Vec<Template>, StoreError> {
    let mut listed: Vec<Template> = Vec::new();
    loop {
        let wanted = (limit - listed.len() as u32).min(NAMES_MAX);
        if wanted == 0 {
            return Ok(listed);
        }
        let after = listed.last().map(|last| &last.name).or(after).map_or("", TemplateName::as_str);
        let tenant = tenant.as_str();
        let rows = session.rows(LIST, values![tenant, after, tenant, wanted, tenant, tenant]).await?;
        for row in &rows {
            listed.push(read(row)?);
        }
        if rows.len() < wanted as usize {
            return Ok(listed);
        }
    }
}

pub(crate) async fn versions(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    name: &TemplateName,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Template>, StoreError> {
    let values = values![tenant.as_str(), name.as_str(), before.unwrap_or(i64::MAX), limit];
    session.rows(VERSIONS, values).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Template, StoreError> {
    let text = |index| Ok::<_, StoreError>(row.opt_text(index)?.map(ToOwned::to_owned));
    Ok(Template {
        tenant: row.parsed(0)?,
        name: row.parsed(1)?,
        version: row.int(2)?,
        subject: row.text(3)?.to_owned(),
        html: text(4)?,
        text: text(5)?,
        mjml: text(6)?,
        description: text(7)?,
        sample: text(8)?,
        created_at: row.time(9)?,
        layout: row.opt_parsed(10)?,
        inline_css: row.int(11)? != 0,
    })
}
