//! Signatures by the `openssl` command: the encodings and algorithms of an implementation that is not ours.

use std::{fs, path::Path, process::Command};

use postway_domain::Time;
use postway_mime::pec::{SignatureCheck, TrustStore, read, verify};
use tempfile::TempDir;

use crate::support::{SIGNER, Sample, base};

const CONFIG: &str = "[req]\ndistinguished_name=name\n[name]\n[authority]\nbasicConstraints=critical,CA:TRUE\n\
                      keyUsage=critical,keyCertSign\n[mailbox]\nbasicConstraints=critical,CA:FALSE\n\
                      keyUsage=critical,digitalSignature,nonRepudiation\nextendedKeyUsage=emailProtection\n\
                      subjectKeyIdentifier=hash\nsubjectAltName=email:posta-certificata@pec.gestore.example\n";

#[track_caller]
fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the openssl command is there (Debian: openssl)");
    assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
}

/// A folder with an authority, two mailboxes (`rsa` and `ec`) and the content to sign.
fn workshop() -> (TempDir, TrustStore, Time) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("conf"), CONFIG).unwrap();
    fs::write(path.join("content"), base().content()).unwrap();
    openssl(path, "ecparam -name prime256v1 -genkey -noout -out ca.key");
    openssl(
        path,
        "req -x509 -new -key ca.key -config conf -extensions authority -subj /CN=Prova -days 30 -out ca.pem",
    );
    openssl(path, "genrsa -out rsa.key 2048");
    openssl(path, "ecparam -name secp384r1 -genkey -noout -out ec.key");
    for kind in ["rsa", "ec"] {
        openssl(path, &format!("req -new -key {kind}.key -config conf -subj /CN=Gestore -out {kind}.csr"));
        openssl(
            path,
            &format!(
                "x509 -req -in {kind}.csr -CA ca.pem -CAkey ca.key -set_serial 7 -days 20 -extfile conf \
                 -extensions mailbox -out {kind}.pem"
            ),
        );
    }
    let trust = TrustStore::from_pem(&fs::read(path.join("ca.pem")).unwrap()).unwrap();
    let written = fs::metadata(path.join("ca.pem")).unwrap().modified().unwrap();
    let now = written.duration_since(std::time::UNIX_EPOCH).unwrap();
    (folder, trust, Time::from_millis(i64::try_from(now.as_millis()).unwrap()))
}

/// The mail that this command makes of the content, with the header of a receipt.
#[track_caller]
fn sign(folder: &Path, arguments: &str) -> Vec<u8> {
    openssl(folder, &format!("{arguments} -in content -out signed"));
    let receipt: Sample = base();
    let mut raw = receipt.header().replace("MIME-Version: 1.0\r\n", "").into_bytes();
    raw.extend(fs::read(folder.join("signed")).unwrap());
    raw
}

#[test]
fn signatures_by_openssl_are_verified() {
    let (folder, trust, now) = workshop();
    for (key, options) in [
        ("rsa", "smime -sign -md sha256"),
        ("rsa", "smime -sign -md sha384 -crlfeol"),
        ("rsa", "cms -sign -md sha512"),
        ("rsa", "cms -sign -md sha256 -keyid"),
        ("rsa", "cms -sign -md sha256 -binary"),
        (
            "rsa",
            "cms -sign -md sha256 -signer rsa.pem -keyopt rsa_padding_mode:pss -keyopt rsa_pss_saltlen:-1",
        ),
        ("rsa", "cms -sign -md sha256 -nodetach"),
        ("rsa", "cms -sign -md sha256 -nodetach -stream"),
        ("ec", "cms -sign -md sha256"),
        ("ec", "cms -sign -md sha384 -stream"),
        ("ec", "smime -sign -md sha512 -nodetach -indef"),
    ] {
        // Options of a key come after its signer.
        let signer = if options.contains("-signer") { String::new() } else { format!("-signer {key}.pem") };
        let raw = sign(folder.path(), &format!("{options} {signer} -inkey {key}.key"));
        let judged = verify(&raw, &trust, now);
        assert_eq!(judged, SignatureCheck::Verified { signer: SIGNER.into() }, "{key} {options}");
        assert!(read(&raw).expect("a receipt").is_confirmed(), "{key} {options}");
    }
}

#[test]
fn weak_or_unattributed_signatures_by_openssl_are_not() {
    let (folder, trust, now) = workshop();
    for (options, reason) in [
        ("cms -sign -md sha1", "SHA-1"),
        ("cms -sign -md md5", "MD5"),
        ("cms -sign -md sha256 -noattr", "no signed attributes"),
        ("cms -sign -md sha256 -nocerts", "did not come along"),
    ] {
        let raw = sign(folder.path(), &format!("{options} -signer rsa.pem -inkey rsa.key"));
        let SignatureCheck::Unverified { why } = verify(&raw, &trust, now) else { panic!("{options}") };
        assert!(why.contains(reason), "{options}: {why}");
    }
}
