//! Templates and their versions.

use postway_domain::{Template, TemplateName};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
    stage::{all_at_once, direct},
};
use crate::record::{ChangeResult, DirectoryChange};

fn name(name: &str) -> TemplateName {
    name.parse().unwrap()
}

fn version(tenant: &str, named: &str, version: i64) -> Template {
    Template {
        tenant: tenant.parse().unwrap(),
        name: name(named),
        version,
        subject: format!("Version {version}"),
        html: Some(format!("<p>{{{{ name }}}} {version}</p>")),
        text: None,
        mjml: None,
        description: None,
        sample: None,
        layout: None,
        inline_css: false,
        created_at: at(version),
    }
}

async fn create(store: &Shared, template: Template) -> ChangeResult {
    direct(store, DirectoryChange::CreateTemplate(template)).await
}

async fn make(store: &Shared, tenant: &str, named: &str, versions: i64) {
    for number in 1..=versions {
        assert_eq!(create(store, version(tenant, named, number)).await, ChangeResult::Done);
    }
}

async fn versions(store: &Shared, named: &str, before: Option<i64>, limit: u32) -> Vec<i64> {
    let found = store.template_versions(&tenant(), &name(named), before, limit).await.unwrap();
    found.iter().map(|one| one.version).collect()
}

/// With all of its parts, and without those that it may do without.
pub async fn a_template_reads_back_whole(store: &Shared) {
    let whole = Template {
        subject: "Grüße an {{ name }} 📬".to_owned(),
        text: Some("Hallo {{ name }}".to_owned()),
        mjml: Some("<mjml></mjml>".repeat(10_000)),
        description: Some("Willkommen".to_owned()),
        sample: Some(r#"{"name":"Ada"}"#.to_owned()),
        layout: Some(name("base")),
        inline_css: true,
        ..version(TENANT, "welcome", 1)
    };
    assert_eq!(create(store, whole.clone()).await, ChangeResult::Done);
    assert_eq!(store.template(&tenant(), &whole.name, None).await.unwrap(), Some(whole.clone()));
    assert_eq!(store.template(&tenant(), &whole.name, Some(1)).await.unwrap(), Some(whole.clone()));
    assert_eq!(store.template(&tenant(), &whole.name, Some(2)).await.unwrap(), None);
    assert_eq!(store.template(&other_tenant(), &whole.name, None).await.unwrap(), None);
    assert_eq!(store.template(&tenant(), &name("Welcome"), None).await.unwrap(), None, "case counts");
    let bare = Template { html: None, ..version(TENANT, "bare", 1) };
    assert_eq!(create(store, bare.clone()).await, ChangeResult::Done);
    assert_eq!(store.template(&tenant(), &bare.name, None).await.unwrap(), Some(bare));
}

/// Each takes the number after the latest.
pub async fn versions_follow_each_other(store: &Shared) {
    assert_eq!(create(store, version(TENANT, "a", 2)).await, ChangeResult::Stale, "there is no first");
    assert_eq!(create(store, version(TENANT, "a", 0)).await, ChangeResult::Stale);
    assert_eq!(store.template(&tenant(), &name("a"), None).await.unwrap(), None);
    make(store, TENANT, "a", 2).await;
    let again = Template { subject: "Another".to_owned(), ..version(TENANT, "a", 2) };
    assert_eq!(create(store, again).await, ChangeResult::Exists);
    assert_eq!(create(store, version(TENANT, "a", 4)).await, ChangeResult::Stale);
    assert_eq!(
        create(store, version(OTHER_TENANT, "a", 3)).await,
        ChangeResult::Stale,
        "each tenant counts its own"
    );
    assert_eq!(create(store, version(TENANT, "a", 3)).await, ChangeResult::Done);
    let latest = store.template(&tenant(), &name("a"), None).await.unwrap();
    assert_eq!(latest, Some(version(TENANT, "a", 3)));
    assert_eq!(store.template(&tenant(), &name("a"), Some(2)).await.unwrap(), Some(version(TENANT, "a", 2)));
}

/// Those who read the same latest version do not overwrite each other.
pub async fn of_concurrent_versions_with_one_number_one_is_made(store: &Shared) {
    make(store, TENANT, "a", 1).await;
    let calls = (0..8).map(|n| {
        let store = store.clone();
        let template = Template { subject: format!("By {n}"), ..version(TENANT, "a", 2) };
        async move { (template.subject.clone(), create(&store, template).await) }
    });
    let (made, refused): (Vec<_>, Vec<_>) =
        all_at_once(calls).await.into_iter().partition(|(_, changed)| *changed == ChangeResult::Done);
    assert_eq!(made.len(), 1);
    assert!(refused.iter().all(|(_, changed)| *changed == ChangeResult::Exists), "{refused:?}");
    let found = store.template(&tenant(), &name("a"), None).await.unwrap().unwrap();
    assert_eq!((found.version, &found.subject), (2, &made[0].0));
}

/// There is an end to what is kept.
pub async fn beyond_the_most_versions_the_oldest_go(store: &Shared) {
    const KEPT: i64 = Template::VERSIONS_MAX;
    make(store, TENANT, "a", KEPT).await;
    assert!(store.template(&tenant(), &name("a"), Some(1)).await.unwrap().is_some());
    assert_eq!(create(store, version(TENANT, "a", KEPT + 1)).await, ChangeResult::Done);
    assert_eq!(store.template(&tenant(), &name("a"), Some(1)).await.unwrap(), None);
    assert_eq!(versions(store, "a", Some(4), 9).await, [3, 2]);
    assert_eq!(
        create(store, version(TENANT, "a", 1)).await,
        ChangeResult::Stale,
        "a number is not used again"
    );
}

/// The latest first, page by page.
pub async fn versions_are_listed_latest_first(store: &Shared) {
    make(store, TENANT, "a", 5).await;
    make(store, TENANT, "b", 1).await;
    assert_eq!(versions(store, "a", None, 2).await, [5, 4]);
    assert_eq!(versions(store, "a", Some(4), 9).await, [3, 2, 1]);
    assert!(
        versions(store, "a", Some(1), 9).await.is_empty() && versions(store, "c", None, 9).await.is_empty()
    );
    assert!(store.template_versions(&other_tenant(), &name("a"), None, 9).await.unwrap().is_empty());
}

/// Each name once, in its latest version.
pub async fn templates_are_listed_by_name_in_their_latest_version(store: &Shared) {
    for (named, versions) in [("b", 3), ("A", 1), ("a", 11), ("z-1", 2), ("Z_2", 1)] {
        make(store, TENANT, named, versions).await;
    }
    make(store, OTHER_TENANT, "c", 2).await;
    let mut listed: Vec<(String, i64)> = Vec::new();
    let mut after: Option<TemplateName> = None;
    loop {
        let page = store.templates(&tenant(), after.as_ref(), 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        listed.extend(page.iter().map(|one| (one.name.to_string(), one.version)));
    }
    let expected = [("A", 1), ("Z_2", 1), ("a", 11), ("b", 3), ("z-1", 2)];
    assert_eq!(listed, expected.map(|(named, version)| (named.to_owned(), version)));
    assert_eq!(store.templates(&tenant(), None, 1_000).await.unwrap().len(), 5);
    assert!(store.templates(&"nobody".parse().unwrap(), None, 9).await.unwrap().is_empty());
}

/// A page may be longer than what one statement gives.
pub async fn a_long_page_of_templates_is_whole(store: &Shared) {
    let names: Vec<String> = (0..620).map(|n| format!("t{n:03}")).collect();
    all_at_once(names.clone().into_iter().map(|named| {
        let store = store.clone();
        async move { assert_eq!(create(&store, version(TENANT, &named, 1)).await, ChangeResult::Done) }
    }))
    .await;
    let listed = store.templates(&tenant(), None, 610).await.unwrap();
    let listed: Vec<String> = listed.iter().map(|one| one.name.to_string()).collect();
    assert_eq!(listed, names[..610]);
    assert_eq!(store.templates(&tenant(), None, 5_000).await.unwrap().len(), 620);
}

/// With all its versions; the next of its name is a new one.
pub async fn a_deleted_template_is_gone_and_its_name_starts_anew(store: &Shared) {
    make(store, TENANT, "a", 3).await;
    make(store, TENANT, "b", 1).await;
    make(store, OTHER_TENANT, "a", 1).await;
    let delete = || DirectoryChange::DeleteTemplate(tenant(), name("a"));
    assert_eq!(direct(store, delete()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete()).await, ChangeResult::Missing);
    assert!(versions(store, "a", None, 9).await.is_empty());
    assert_eq!(store.template(&tenant(), &name("a"), Some(2)).await.unwrap(), None);
    assert!(store.template(&tenant(), &name("b"), None).await.unwrap().is_some());
    assert!(store.template(&other_tenant(), &name("a"), None).await.unwrap().is_some());
    assert_eq!(create(store, version(TENANT, "a", 4)).await, ChangeResult::Stale);
    make(store, TENANT, "a", 1).await;
}

/// What is made at the same time goes along, or is refused.
pub async fn a_deletion_leaves_no_version_behind(store: &Shared) {
    for round in 0..10 {
        make(store, TENANT, "a", 1).await;
        let (first, second) = (store.clone(), store.clone());
        let calls: [std::pin::Pin<Box<dyn Future<Output = ChangeResult> + Send>>; 2] = [
            Box::pin(async move { create(&first, version(TENANT, "a", 2)).await }),
            Box::pin(
                async move { direct(&second, DirectoryChange::DeleteTemplate(tenant(), name("a"))).await },
            ),
        ];
        let answers = all_at_once(calls).await;
        assert_eq!(answers[1], ChangeResult::Done, "round {round}");
        assert!(versions(store, "a", None, 9).await.is_empty(), "round {round}: {answers:?}");
    }
}
