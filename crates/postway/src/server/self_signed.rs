//! A self-signed certificate for listeners that need one, made if none is configured. HTTP and SMTP share it; its
//! files have their names from when SMTP alone spoke TLS, because clients trust them by these.
//!
//! It lives in the data folder, its key readable by its owner alone, is used again after a restart, and is
//! made anew a month before it expires; the listeners notice new files by itself. It keeps passwords from
//! being read on the way, and proves nothing to a client that does not have it: every start says so.

use std::{fs, path::Path, time::Duration};

use anyhow::Context as _;
use jiff::{Timestamp, tz::TimeZone};
use postway_domain::{Clock, Time};
use postway_net::listen::CertificateFiles;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use tokio_util::sync::CancellationToken;

use crate::server::keys::write_private;

const CERTIFICATE_FILE: &str = "smtp-self-signed.pem";
const KEY_FILE: &str = "smtp-self-signed.key";
/// The line with the expiry in the certificate's file: readers ignore text outside the PEM markers.
const EXPIRES: &str = "Made by Postway; expires at Unix time ";
const DAY_S: i64 = 24 * 60 * 60;
/// How long a certificate is valid.
const LASTS_S: i64 = 365 * DAY_S;
/// How long before its end it is made anew.
const RENEWED_BEFORE_S: i64 = 30 * DAY_S;
/// How often to check whether it is time.
const LOOK_EVERY: Duration = Duration::from_secs(6 * 60 * 60);

/// The files of a certificate for this name that stays valid for a while: the existing ones, or new ones.
pub fn ensure(folder: &Path, name: &str, now: Time) -> anyhow::Result<CertificateFiles> {
    let files = CertificateFiles::new(folder.join(CERTIFICATE_FILE), folder.join(KEY_FILE));
    let expires = fs::read_to_string(&files.certificate).ok().and_then(|text| expiry(&text));
    let lasts = expires.is_some_and(|expires| expires - now.as_seconds() > RENEWED_BEFORE_S);
    if !lasts || !files.key.exists() {
        make(&files, name, now).context("cannot make a self-signed certificate")?;
        let file = files.certificate.display();
        tracing::warn!(%file, "A LISTENER HAS NO CERTIFICATE (tls.certificate_file): Postway made one of its own, which clients trust only if they are configured to");
    }
    Ok(files)
}

/// Renews the certificate in time, as long as the listener runs.
pub async fn keep(folder: &Path, name: &str, clock: &dyn Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Err(error) = ensure(folder, name, clock.now()) {
            tracing::warn!(
                error = format!("{error:#}"),
                "the self-signed certificate could not be made anew"
            );
        }
    }
}

fn expiry(text: &str) -> Option<i64> {
    text.lines().find_map(|line| line.strip_prefix(EXPIRES))?.trim().parse().ok()
}

fn make(files: &CertificateFiles, name: &str, now: Time) -> anyhow::Result<()> {
    let expires = now.as_seconds() + LASTS_S;
    let day = |seconds: i64| -> anyhow::Result<_> {
        let day = Timestamp::from_second(seconds)?.to_zoned(TimeZone::UTC).date();
        Ok(date_time_ymd(day.year().into(), day.month().try_into()?, day.day().try_into()?))
    };
    // An address literal stands in brackets, in the certificate without them.
    let name = name.trim_start_matches('[').trim_end_matches(']').trim_start_matches("IPv6:");
    let mut params = CertificateParams::new(vec![name.to_owned(), "localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, "Postway, self-signed");
    // Clocks of clients may be behind; and the day that it ends on is not counted upon.
    params.not_before = day(now.as_seconds() - DAY_S)?;
    params.not_after = day(expires + DAY_S)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    // The key first: until the certificate follows, the pair does not fit, and the listener keeps the one
    // that it has.
    write_private(&files.key, key.serialize_pem().trim_end())?;
    write_private(&files.certificate, &format!("{EXPIRES}{expires}\n{}", certificate.pem().trim_end()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use postway_net::listen::ServerCertificate;

    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_certificate_is_made_once_kept_and_renewed_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let files = ensure(folder.path(), "mail.example.com", at(NOW_S)).unwrap();
        let read = || (fs::read(&files.certificate).unwrap(), fs::read(&files.key).unwrap());
        let first = read();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(ServerCertificate::open(files.clone()).is_ok(), "the pair can be used");

        ensure(folder.path(), "mail.example.com", at(NOW_S + LASTS_S - RENEWED_BEFORE_S - 1)).unwrap();
        assert_eq!(read(), first, "it is used again");
        ensure(folder.path(), "mail.example.com", at(NOW_S + LASTS_S - RENEWED_BEFORE_S)).unwrap();
        assert!(read().0 != first.0 && read().1 != first.1, "it is made anew a month before its end");
        fs::remove_file(&files.key).unwrap();
        ensure(folder.path(), "mail.example.com", at(NOW_S)).unwrap();
        assert!(files.key.exists());
        fs::write(&files.certificate, "no certificate").unwrap();
        ensure(folder.path(), "mail.example.com", at(NOW_S)).unwrap();
        assert!(expiry(&fs::read_to_string(&files.certificate).unwrap()).is_some());
    }

    #[test]
    fn every_name_of_a_server_has_a_certificate() {
        for name in [
            "mail.example.com",
            "localhost",
            "[192.0.2.1]",
            "[IPv6:2001:db8::1]",
            "host_with_underscore",
            "a",
        ] {
            let folder = tempfile::tempdir().unwrap();
            ensure(folder.path(), name, at(NOW_S)).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }
}
