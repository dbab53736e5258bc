//! Known recipients: a tenant's directory of people.

use postway_domain::{
    KnownRecipient, PersonalDigest, RecipientId, RecipientKey, TenantId, secret::SealedSecret,
};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
    stage::{all_at_once, direct},
};
use crate::record::{ChangeResult, DirectoryChange};

fn id(number: u8) -> RecipientId {
    RecipientId::from_bytes([number; 16])
}

/// The n-th entry of a tenant, without anything it may do without.
pub fn recipient(tenant: &str, number: u8) -> KnownRecipient {
    KnownRecipient {
        tenant: tenant.parse().unwrap(),
        id: id(number),
        external_id: None,
        name: None,
        locale: None,
        address: format!("person-{number}@example.org"),
        personal_number: None,
        personal_number_digest: None,
        personal_number_masked: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
        deleted_at: None,
    }
}

fn external(number: u8, external_id: &str) -> KnownRecipient {
    KnownRecipient { external_id: Some(external_id.to_owned()), ..recipient(TENANT, number) }
}

async fn create(store: &Shared, recipient: KnownRecipient) -> ChangeResult {
    direct(store, DirectoryChange::CreateRecipient(recipient)).await
}

async fn update(store: &Shared, recipient: KnownRecipient, expected: i64) -> ChangeResult {
    direct(store, DirectoryChange::UpdateRecipient(recipient, expected)).await
}

async fn delete(store: &Shared, number: u8, ms: i64) -> ChangeResult {
    direct(store, DirectoryChange::DeleteRecipient(tenant(), id(number), at(ms))).await
}

async fn find(store: &Shared, tenant: &TenantId, key: RecipientKey) -> Option<KnownRecipient> {
    store.recipient(tenant, &key).await.unwrap()
}

fn by_external(external_id: &str) -> RecipientKey {
    RecipientKey::External(external_id.to_owned())
}

/// By any of its keys.
pub async fn a_known_recipient_reads_back_whole(store: &Shared) {
    let digest = PersonalDigest([0xab; 32]);
    let whole = KnownRecipient {
        name: Some("Zoë Größe".to_owned()),
        address: "Zoë.Größe@Example.org".to_owned(),
        personal_number: Some(SealedSecret(vec![0, 255, 7])),
        personal_number_digest: Some(digest),
        personal_number_masked: Some("•••••••12".to_owned()),
        version: 4,
        updated_at: at(9),
        ..external(1, "crm/Ä 1")
    };
    assert_eq!(create(store, whole.clone()).await, ChangeResult::Done);
    assert_eq!(create(store, recipient(TENANT, 2)).await, ChangeResult::Done);
    for key in [RecipientKey::Id(id(1)), by_external("crm/Ä 1"), RecipientKey::Personal(digest)] {
        assert_eq!(find(store, &tenant(), key.clone()).await, Some(whole.clone()));
        assert_eq!(find(store, &other_tenant(), key).await, None);
    }
    assert_eq!(find(store, &tenant(), RecipientKey::Id(id(2))).await, Some(recipient(TENANT, 2)));
    assert_eq!(
        find(store, &tenant(), by_external("CRM/Ä 1")).await,
        None,
        "it is the tenant's, to the letter"
    );
    assert_eq!(find(store, &tenant(), RecipientKey::Personal(PersonalDigest([1; 32]))).await, None);
}

/// Among those not deleted.
pub async fn an_external_id_is_taken_once_per_tenant(store: &Shared) {
    assert_eq!(create(store, external(1, "x")).await, ChangeResult::Done);
    assert_eq!(create(store, external(2, "x")).await, ChangeResult::Exists);
    assert_eq!(create(store, recipient(TENANT, 1)).await, ChangeResult::Exists, "our own id, too");
    let theirs = KnownRecipient { external_id: Some("x".to_owned()), ..recipient(OTHER_TENANT, 1) };
    assert_eq!(create(store, theirs).await, ChangeResult::Done);
    assert_eq!(create(store, external(2, "y")).await, ChangeResult::Done);
    let moved = KnownRecipient { version: 2, ..external(2, "x") };
    assert_eq!(update(store, moved.clone(), 1).await, ChangeResult::Exists);
    assert_eq!(find(store, &tenant(), by_external("x")).await, Some(external(1, "x")));
    assert_eq!(find(store, &tenant(), by_external("y")).await, Some(external(2, "y")));

    assert_eq!(delete(store, 1, 5).await, ChangeResult::Done);
    assert_eq!(update(store, moved.clone(), 1).await, ChangeResult::Done, "it has become free");
    assert_eq!(find(store, &tenant(), by_external("x")).await, Some(moved));
    assert_eq!(delete(store, 2, 6).await, ChangeResult::Done);
    assert_eq!(create(store, external(3, "x")).await, ChangeResult::Done, "and again");
    for number in 4..6 {
        assert_eq!(create(store, recipient(TENANT, number)).await, ChangeResult::Done, "none is no id");
    }
}

/// The second of two concurrent requests for the same external id is refused.
pub async fn of_concurrent_claims_to_an_external_id_one_wins(store: &Shared) {
    for number in 1..=4 {
        assert_eq!(create(store, recipient(TENANT, number)).await, ChangeResult::Done);
    }
    let calls = (1..=8).map(|number| {
        let store = store.clone();
        let claimant = external(number, "wanted");
        async move {
            match number {
                1..=4 => update(&store, KnownRecipient { version: 2, ..claimant }, 1).await,
                _ => create(&store, claimant).await,
            }
        }
    });
    let answers = all_at_once(calls).await;
    assert_eq!(answers.iter().filter(|answer| **answer == ChangeResult::Done).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| **answer == ChangeResult::Exists).count(), 7, "{answers:?}");
    let winner = find(store, &tenant(), by_external("wanted")).await.unwrap();
    let place = answers.iter().position(|answer| *answer == ChangeResult::Done).unwrap();
    assert_eq!(winner.id, id(place as u8 + 1));
    let known = store.recipients(&tenant(), None, None, 99).await.unwrap();
    assert!(known.iter().all(|one| (1..=8).any(|number| one.id == id(number))), "{known:?}");
}

/// Who read an older version looks again.
pub async fn a_recipient_update_needs_the_version_it_read(store: &Shared) {
    let first = KnownRecipient {
        personal_number: Some(SealedSecret(vec![1])),
        personal_number_digest: Some(PersonalDigest([1; 32])),
        personal_number_masked: Some("•1".to_owned()),
        ..external(1, "x")
    };
    assert_eq!(create(store, first).await, ChangeResult::Done);
    let second = KnownRecipient {
        name: Some("Ada".to_owned()),
        address: "ada@example.org".to_owned(),
        version: 2,
        updated_at: at(3),
        ..external(1, "x")
    };
    assert_eq!(update(store, second.clone(), 1).await, ChangeResult::Done);
    assert_eq!(find(store, &tenant(), RecipientKey::Id(id(1))).await, Some(second.clone()));
    assert_eq!(find(store, &tenant(), RecipientKey::Personal(PersonalDigest([1; 32]))).await, None);
    let late = KnownRecipient { name: Some("Late".to_owned()), external_id: None, ..second.clone() };
    assert_eq!(update(store, late, 1).await, ChangeResult::Stale);
    assert_eq!(update(store, recipient(OTHER_TENANT, 1), 2).await, ChangeResult::Stale);
    assert_eq!(update(store, external(9, "nobody"), 1).await, ChangeResult::Stale);
    assert_eq!(find(store, &tenant(), by_external("nobody")).await, None);
    assert_eq!(find(store, &tenant(), by_external("x")).await, Some(second));
}

/// It stays to be shown, without its personal number, and is found by its id only.
pub async fn a_deleted_recipient_is_marked_and_stays_so(store: &Shared) {
    let digest = PersonalDigest([2; 32]);
    let known = KnownRecipient {
        personal_number: Some(SealedSecret(vec![2])),
        personal_number_digest: Some(digest),
        personal_number_masked: Some("•2".to_owned()),
        version: 3,
        ..external(1, "x")
    };
    assert_eq!(create(store, known.clone()).await, ChangeResult::Done);
    let theirs = DirectoryChange::DeleteRecipient(other_tenant(), id(1), at(4));
    assert_eq!(direct(store, theirs).await, ChangeResult::Missing);
    assert_eq!(delete(store, 2, 4).await, ChangeResult::Missing);
    assert_eq!(delete(store, 1, 5).await, ChangeResult::Done);
    assert_eq!(delete(store, 1, 6).await, ChangeResult::Already);
    let deleted = KnownRecipient {
        personal_number: None,
        personal_number_digest: None,
        deleted_at: Some(at(5)),
        updated_at: at(5),
        version: 4,
        ..known
    };
    assert_eq!(find(store, &tenant(), RecipientKey::Id(id(1))).await, Some(deleted.clone()));
    let had_it = find(store, &tenant(), by_external("x")).await.expect("whoever had it last");
    assert!(had_it.deleted_at.is_some());
    assert_eq!(find(store, &tenant(), RecipientKey::Personal(digest)).await, None);
    assert!(store.recipients(&tenant(), None, None, 9).await.unwrap().is_empty());
    assert!(store.recipients(&tenant(), Some(&deleted.address), None, 9).await.unwrap().is_empty());
    let again = KnownRecipient { deleted_at: None, version: 5, ..deleted.clone() };
    assert_eq!(update(store, again, 4).await, ChangeResult::Stale, "what is deleted is changed no more");
    assert_eq!(find(store, &tenant(), RecipientKey::Id(id(1))).await, Some(deleted));
}

async fn listed(store: &Shared, address: Option<&str>, after: Option<u8>, limit: u32) -> Vec<u8> {
    let found = store.recipients(&tenant(), address, after.map(id), limit).await.unwrap();
    found.iter().map(|one| one.id.as_bytes()[0]).collect()
}

/// The deleted are left out.
pub async fn recipients_are_listed_by_id_page_by_page(store: &Shared) {
    for number in [7, 1, 200, 3, 4] {
        assert_eq!(create(store, recipient(TENANT, number)).await, ChangeResult::Done);
    }
    assert_eq!(create(store, recipient(OTHER_TENANT, 2)).await, ChangeResult::Done);
    assert_eq!(delete(store, 3, 1).await, ChangeResult::Done);
    assert_eq!(listed(store, None, None, 2).await, [1, 4]);
    assert_eq!(listed(store, None, Some(4), 2).await, [7, 200]);
    assert!(listed(store, None, Some(200), 2).await.is_empty());
}

/// Several may share one; its case does not matter, everything else does.
pub async fn recipients_are_listed_by_address_in_any_case(store: &Shared) {
    let of =
        |number, address: &str| KnownRecipient { address: address.to_owned(), ..recipient(TENANT, number) };
    let addresses =
        ["Jose@example.org", "josé@example.org", "jose@EXAMPLE.org", "jose@example.org", "jo@example.org"];
    for (number, address) in (1..).zip(addresses) {
        assert_eq!(create(store, of(number, address)).await, ChangeResult::Done);
    }
    let theirs = KnownRecipient { tenant: other_tenant(), ..of(9, "jose@example.org") };
    assert_eq!(create(store, theirs).await, ChangeResult::Done);
    assert_eq!(listed(store, Some("JOSE@example.org"), None, 9).await, [1, 3, 4]);
    assert_eq!(listed(store, Some("JOSE@example.org"), None, 2).await, [1, 3]);
    assert_eq!(listed(store, Some("jose@example.org"), Some(1), 1).await, [3]);
    assert_eq!(listed(store, Some("josé@Example.org"), None, 9).await, [2]);
    assert!(listed(store, Some("jose@example.or"), None, 9).await.is_empty());
}
