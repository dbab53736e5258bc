//! Bytes that belong to a message: small bodies are in the message's row, large ones in a blob.

use std::{fmt, str::FromStr};

use bytes::Bytes;

/// A message's bytes, or a reference to the blob that has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// In the row itself.
    Inline(Bytes),
    /// In a blob.
    Blob(BlobRef),
}

/// A blob and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Its name.
    pub name: BlobName,
    /// Its size in bytes.
    pub size: u64,
}

impl StoredBody {
    /// No bytes, for a message that is not composed yet.
    pub const EMPTY: Self = Self::Inline(Bytes::new());

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Blob(blob) => blob.size,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in the row.
    pub fn inline(&self) -> Option<&Bytes> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::Blob(_) => None,
        }
    }

    /// The blob, if they are in one.
    pub fn blob(&self) -> Option<&BlobRef> {
        match self {
            Self::Inline(_) => None,
            Self::Blob(blob) => Some(blob),
        }
    }
}

impl From<Bytes> for StoredBody {
    fn from(bytes: Bytes) -> Self {
        Self::Inline(bytes)
    }
}

/// The name of a blob: the digest of its tenant and content, and a generation that distinguishes it from a
/// deleted predecessor with the same content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// The digest.
    pub digest: [u8; 32],
    /// The generation of this content's blob. The name of a deleted blob is never used again.
    pub generation: i64,
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        match self.generation {
            0 => Ok(()),
            generation => write!(f, "-{generation}"),
        }
    }
}

/// The text is not the name of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a blob")]
pub struct NoBlobName;

impl FromStr for BlobName {
    type Err = NoBlobName;

    fn from_str(text: &str) -> Result<Self, NoBlobName> {
        let (digest, generation) = match text.split_once('-') {
            Some((digest, generation)) => (digest, generation.parse().map_err(|_| NoBlobName)?),
            None => (text, 0),
        };
        if digest.len() != 64 || !digest.is_ascii() {
            return Err(NoBlobName);
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digest[2 * index..2 * index + 2], 16).map_err(|_| NoBlobName)?;
        }
        Ok(Self { digest: bytes, generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_found_again_by_its_name() {
        for generation in [0, 1, 17] {
            let name = BlobName { digest: [0xa5; 32], generation };
            assert_eq!(name.to_string().parse::<BlobName>(), Ok(name));
        }
        for bad in ["", "a5", "../../etc/passwd", &"zz".repeat(32), &format!("{}-x", "a5".repeat(32))] {
            assert_eq!(bad.parse::<BlobName>(), Err(NoBlobName), "{bad}");
        }
    }
}
