//! Sealed copies of mail, as archives store them.
//!
//! A sealed copy begins with a line that names its context, `postway-sealed 1 archive/TENANT/UID`; behind it are
//! the nonce and the ciphertext of AES-256-GCM under the gateway's secret key. It opens in no other context.

use super::{
    id::{MessageUid, TenantId},
    secret::{SealedSecret, SecretError, SecretKey},
};

/// The first words of a sealed copy.
const FIRST_WORDS: &str = "postway-sealed 1 ";
/// The longest first line of a sealed copy.
const LINE_BYTES_MAX: usize = 256;

/// Why a copy does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealedCopyError {
    /// Its first line is not that of a sealed copy.
    #[error("this is no sealed copy: its first line is not `{FIRST_WORDS}…`")]
    NotSealed,
    /// It does not open with this key.
    #[error(
        "the copy does not open with this secret key; if the key was replaced, give the old one as POSTWAY_SECRET_KEY_PREVIOUS"
    )]
    Key,
}

/// Seals the copy of a message.
pub fn seal_copy(
    key: &SecretKey,
    tenant: &TenantId,
    uid: MessageUid,
    copy: &[u8],
) -> Result<Vec<u8>, SecretError> {
    let context = format!("archive/{tenant}/{uid}");
    let sealed = key.seal_bytes(&context, copy)?;
    let mut file = format!("{FIRST_WORDS}{context}\n").into_bytes();
    file.extend_from_slice(&sealed.0);
    Ok(file)
}

/// Opens a sealed copy with the key that sealed it, or a successor that knows that one.
pub fn open_copy(key: &SecretKey, file: &[u8]) -> Result<Vec<u8>, SealedCopyError> {
    let head = &file[..file.len().min(LINE_BYTES_MAX)];
    let end = head.iter().position(|byte| *byte == b'\n').ok_or(SealedCopyError::NotSealed)?;
    let line = std::str::from_utf8(&head[..end]).map_err(|_| SealedCopyError::NotSealed)?;
    let context = line.strip_prefix(FIRST_WORDS).ok_or(SealedCopyError::NotSealed)?;
    let sealed = SealedSecret(file[end + 1..].to_vec());
    key.open_bytes(context, &sealed).map_err(|_| SealedCopyError::Key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_copy_opens_with_its_key_and_its_own_first_line() {
        let key = |byte| SecretKey::from_bytes(&[byte; 32]).unwrap();
        let uid = MessageUid::from_bytes([3; 16]);
        let tenant: TenantId = "acme".parse().unwrap();
        let file = seal_copy(&key(7), &tenant, uid, b"From: a\r\n\r\n\xff").unwrap();
        assert!(
            file.starts_with(b"postway-sealed 1 archive/acme/") && !file.windows(5).any(|at| at == b"From:")
        );
        assert_eq!(open_copy(&key(7), &file).unwrap(), b"From: a\r\n\r\n\xff");
        assert_eq!(open_copy(&key(8), &file), Err(SealedCopyError::Key));
        assert!(open_copy(&key(8).with_previous(key(7)), &file).is_ok());
        let other = [b"postway-sealed 1 archive/globex/x\n".to_vec(), file[60..].to_vec()].concat();
        assert_eq!(open_copy(&key(7), &other), Err(SealedCopyError::Key));
        for bytes in [&b"From: a\r\n"[..], b"", b"postway-sealed 1 archive/acme/x", &[b'x'; 500]] {
            assert_eq!(open_copy(&key(7), bytes), Err(SealedCopyError::NotSealed));
        }
        assert_eq!(open_copy(&key(7), b"postway-sealed 1 x\n"), Err(SealedCopyError::Key));
    }
}
