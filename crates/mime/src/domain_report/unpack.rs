//! Unpacks gzip and zip into bounded memory.
//!
//! A report is the one file of its archive, so of a zip the first file is read, by its own header. The stream
//! says where it ends; sizes that the archive states are not believed.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

use super::DomainReportError;

/// The fixed part of the header of a file in a zip.
const ZIP_HEADER_BYTES: usize = 30;
/// The flag of a file that a password protects.
const ZIP_ENCRYPTED: u16 = 1;
const ZIP_STORED: u16 = 0;
const ZIP_DEFLATED: u16 = 8;

/// Unpacks a gzip stream, and takes what it needs from `room`.
pub(super) fn gzip(packed: &[u8], room: &mut usize) -> Result<Vec<u8>, DomainReportError> {
    read_bounded(MultiGzDecoder::new(packed), room)
}

/// Unpacks the first file of a zip; `None` if that is a folder or an office document, which are no reports.
pub(super) fn zip(packed: &[u8], room: &mut usize) -> Result<Option<Vec<u8>>, DomainReportError> {
    let damaged = DomainReportError::Packed("the archive is damaged");
    let header = packed.get(..ZIP_HEADER_BYTES).ok_or_else(|| damaged.clone())?;
    let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let name_end = ZIP_HEADER_BYTES + usize::from(short(26));
    let name = packed.get(ZIP_HEADER_BYTES..name_end).ok_or_else(|| damaged.clone())?;
    let data = packed.get(name_end + usize::from(short(28))..).ok_or_else(|| damaged.clone())?;
    let name = name.to_ascii_lowercase();
    if !(name.ends_with(b".xml") || name.ends_with(b".json")) || name.contains(&b'[') {
        return Ok(None);
    }
    if short(6) & ZIP_ENCRYPTED != 0 {
        return Err(DomainReportError::Packed("a password protects it"));
    }
    match short(8) {
        ZIP_DEFLATED => read_bounded(DeflateDecoder::new(data), room).map(Some),
        ZIP_STORED => {
            let size = u32::from_le_bytes([header[18], header[19], header[20], header[21]]) as usize;
            let file = data.get(..size).ok_or(damaged)?;
            read_bounded(file, room).map(Some)
        }
        _ => Err(DomainReportError::Packed("its compression is not deflate")),
    }
}

fn read_bounded(packed: impl Read, room: &mut usize) -> Result<Vec<u8>, DomainReportError> {
    let mut file = Vec::new();
    let read = packed.take(*room as u64 + 1).read_to_end(&mut file);
    let is_too_large = file.len() > *room;
    *room = room.saturating_sub(file.len());
    match read {
        _ if is_too_large => Err(DomainReportError::TooLarge),
        Ok(_) => Ok(file),
        Err(_) => Err(DomainReportError::Packed("the stream is damaged")),
    }
}
