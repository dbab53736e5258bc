//! Reads `daticert.xml`, the data that a provider certifies (RFC 6109, 4.4).
//!
//! The file is small and flat, so it is bounded in size, depth, attributes and recipients. A document type
//! and entities other than XML's five and character references are not allowed: a file that has them is
//! refused, not read in part. Unknown elements are skipped and unknown values are kept. All charsets of mail
//! are supported; octets that are invalid in the declared encoding are replaced.

use jiff::{civil::DateTime, tz::Offset};
use postway_domain::Time;
use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::encoding::decode;

const BYTES_MAX: usize = 1024 * 1024;
const DEPTH_MAX: usize = 16;
const ATTRIBUTES_MAX: usize = 32;
const RECIPIENTS_MAX: usize = 10_000;
/// The longest text of an element that is kept; longer text is cut.
const TEXT_BYTES_MAX: usize = 4096;

/// Why a `daticert.xml` was not read. The receipt is then read from its header alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DaticertError {
    /// The transfer encoding of the part is broken.
    #[error("the transfer encoding of daticert.xml is broken")]
    Encoding,
    /// The file is larger than any provider's.
    #[error("daticert.xml has more than {BYTES_MAX} bytes")]
    TooLarge,
    /// The elements are nested too deeply.
    #[error("daticert.xml is more than {DEPTH_MAX} elements deep")]
    TooDeep,
    /// An element has more attributes than the format defines.
    #[error("an element of daticert.xml has more than {ATTRIBUTES_MAX} attributes")]
    TooManyAttributes,
    /// The file has more recipients than a certified mail may have.
    #[error("daticert.xml names more than {RECIPIENTS_MAX} recipients")]
    TooManyRecipients,
    /// The file has a document type, which could define entities.
    #[error("daticert.xml has a document type, which is not read")]
    DocumentType,
    /// The file has an entity that XML does not predefine.
    #[error("daticert.xml has an entity that XML does not predefine")]
    Entity,
    /// The file is XML of another kind.
    #[error("daticert.xml does not hold a postacert element")]
    NotPostacert,
    /// The file is not XML.
    #[error("daticert.xml is malformed at byte {0}")]
    Malformed(u64),
}

/// A recipient named in daticert.xml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptRecipient {
    /// The address as it is written.
    pub address: String,
    /// `certificato` (a certified mailbox), `esterno` (an ordinary one), or another value.
    pub kind: Option<String>,
}

/// The content of the file; names and notation are those of [`super::CertifiedReceipt`].
#[derive(Debug, Default)]
pub(super) struct CertifiedData {
    pub(super) kind: Option<String>,
    pub(super) error: Option<String>,
    pub(super) sender: Option<String>,
    pub(super) recipients: Vec<ReceiptRecipient>,
    pub(super) subject: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) identifier: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) form: Option<String>,
    pub(super) delivered_to: Option<String>,
    pub(super) received_for: Vec<String>,
    pub(super) error_text: Option<String>,
    pub(super) at: Option<Time>,
    /// The `tipo` of the recipient whose element is open.
    recipient_kind: Option<String>,
    day: Option<String>,
    hour: Option<String>,
    zone: Option<String>,
}

/// The elements of the document that matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DaticertElement {
    Root,
    Heading,
    Data,
    Date,
    Leaf(DaticertLeaf),
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DaticertLeaf {
    Sender,
    Recipient,
    Subject,
    Provider,
    Day,
    Hour,
    Identifier,
    Reference,
    Form,
    DeliveredTo,
    ReceivedFor,
    ErrorText,
}

fn child_element(parent: DaticertElement, name: &[u8]) -> DaticertElement {
    match (parent, name) {
        (DaticertElement::Root, b"intestazione") => DaticertElement::Heading,
        (DaticertElement::Root, b"dati") => DaticertElement::Data,
        (DaticertElement::Heading, b"mittente") => DaticertElement::Leaf(DaticertLeaf::Sender),
        (DaticertElement::Heading, b"destinatari") => DaticertElement::Leaf(DaticertLeaf::Recipient),
        (DaticertElement::Heading, b"oggetto") => DaticertElement::Leaf(DaticertLeaf::Subject),
        (DaticertElement::Data, b"gestore-emittente") => DaticertElement::Leaf(DaticertLeaf::Provider),
        (DaticertElement::Data, b"data") => DaticertElement::Date,
        (DaticertElement::Date, b"giorno") => DaticertElement::Leaf(DaticertLeaf::Day),
        (DaticertElement::Date, b"ora") => DaticertElement::Leaf(DaticertLeaf::Hour),
        (DaticertElement::Data, b"identificativo") => DaticertElement::Leaf(DaticertLeaf::Identifier),
        (DaticertElement::Data, b"msgid") => DaticertElement::Leaf(DaticertLeaf::Reference),
        (DaticertElement::Data, b"ricevuta") => DaticertElement::Leaf(DaticertLeaf::Form),
        (DaticertElement::Data, b"consegna") => DaticertElement::Leaf(DaticertLeaf::DeliveredTo),
        (DaticertElement::Data, b"ricezione") => DaticertElement::Leaf(DaticertLeaf::ReceivedFor),
        (DaticertElement::Data, b"errore-esteso") => DaticertElement::Leaf(DaticertLeaf::ErrorText),
        _ => DaticertElement::Elsewhere,
    }
}

/// Reads the bytes of a `daticert.xml`.
pub(super) fn read(bytes: &[u8]) -> Result<CertifiedData, DaticertError> {
    if bytes.len() > BYTES_MAX {
        return Err(DaticertError::TooLarge);
    }
    let document = decode(bytes);
    let mut reader = Reader::from_str(&document);
    reader.config_mut().expand_empty_elements = true;
    let mut certified = CertifiedData::default();
    let mut open: Vec<DaticertElement> = Vec::new();
    let mut seen_root = false;
    let mut text = String::new();
    loop {
        let event = reader.read_event().map_err(|_| DaticertError::Malformed(reader.error_position()))?;
        match event {
            Event::Start(element) => {
                if open.len() == DEPTH_MAX {
                    return Err(DaticertError::TooDeep);
                }
                let kind = match open.last() {
                    Some(parent) => child_element(*parent, element.name().as_ref()),
                    None if !seen_root && element.name().as_ref() == b"postacert" => DaticertElement::Root,
                    None => return Err(DaticertError::NotPostacert),
                };
                seen_root = true;
                certified.take_attributes(kind, &element)?;
                text.clear();
                open.push(kind);
            }
            Event::End(_) => {
                if let Some(DaticertElement::Leaf(leaf)) = open.pop() {
                    certified.take_text(leaf, text.trim())?;
                }
                text.clear();
            }
            Event::Text(piece) => append(&mut text, &String::from_utf8_lossy(&piece)),
            Event::CData(piece) => append(&mut text, &String::from_utf8_lossy(&piece)),
            Event::GeneralRef(reference) => append(&mut text, &resolve(&reference)?),
            Event::DocType(_) => return Err(DaticertError::DocumentType),
            Event::Eof if open.is_empty() && seen_root => break,
            Event::Eof if open.is_empty() => return Err(DaticertError::NotPostacert),
            Event::Eof => return Err(DaticertError::Malformed(reader.buffer_position())),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    certified.at = certified.certified_at();
    Ok(certified)
}

impl CertifiedData {
    fn take_attributes(
        &mut self,
        kind: DaticertElement,
        element: &BytesStart<'_>,
    ) -> Result<(), DaticertError> {
        self.recipient_kind = None;
        // The library's check for duplicate names is quadratic. Here the first of several counts.
        for (index, attribute) in element.attributes().with_checks(false).enumerate() {
            if index == ATTRIBUTES_MAX {
                return Err(DaticertError::TooManyAttributes);
            }
            let Ok(attribute) = attribute else { continue };
            let target = match (kind, attribute.key.as_ref()) {
                (DaticertElement::Root, b"tipo") => &mut self.kind,
                (DaticertElement::Root, b"errore") => &mut self.error,
                (DaticertElement::Date, b"zona") => &mut self.zone,
                (DaticertElement::Leaf(DaticertLeaf::Form), b"tipo") => &mut self.form,
                (DaticertElement::Leaf(DaticertLeaf::Recipient), b"tipo") => &mut self.recipient_kind,
                _ => continue,
            };
            if target.is_none() {
                *target = Some(value(&attribute)?);
            }
        }
        Ok(())
    }

    fn take_text(&mut self, leaf: DaticertLeaf, text: &str) -> Result<(), DaticertError> {
        if text.is_empty() {
            return Ok(());
        }
        let target = match leaf {
            DaticertLeaf::Recipient | DaticertLeaf::ReceivedFor
                if self.recipients.len() + self.received_for.len() >= RECIPIENTS_MAX =>
            {
                return Err(DaticertError::TooManyRecipients);
            }
            DaticertLeaf::Recipient => {
                let kind = self.recipient_kind.take();
                self.recipients.push(ReceiptRecipient { address: text.to_owned(), kind });
                return Ok(());
            }
            DaticertLeaf::ReceivedFor => {
                self.received_for.push(text.to_owned());
                return Ok(());
            }
            DaticertLeaf::Form => return Ok(()),
            DaticertLeaf::Sender => &mut self.sender,
            DaticertLeaf::Subject => &mut self.subject,
            DaticertLeaf::Provider => &mut self.provider,
            DaticertLeaf::Day => &mut self.day,
            DaticertLeaf::Hour => &mut self.hour,
            DaticertLeaf::Identifier => &mut self.identifier,
            DaticertLeaf::Reference => &mut self.reference,
            DaticertLeaf::DeliveredTo => &mut self.delivered_to,
            DaticertLeaf::ErrorText => &mut self.error_text,
        };
        target.get_or_insert_with(|| text.to_owned());
        Ok(())
    }

    /// `giorno` as dd/mm/yyyy, `ora` as hh:mm:ss and `zona` as ±hhmm. Without a zone the time is unknown.
    fn certified_at(&self) -> Option<Time> {
        let mut day = self.day.as_deref()?.splitn(3, '/');
        let (date, month, year) =
            (day.next()?.parse().ok()?, day.next()?.parse().ok()?, day.next()?.parse().ok()?);
        let mut clock = self.hour.as_deref()?.splitn(3, ':');
        let (hour, minute) = (clock.next()?.parse().ok()?, clock.next()?.parse().ok()?);
        let second = clock.next().map_or(Some(0), |text| text.get(..2)?.parse().ok())?;
        let at = DateTime::new(year, month, date, hour, minute, second, 0).ok()?;
        let at = offset(self.zone.as_deref()?)?.to_timestamp(at).ok()?;
        Some(Time::from_millis(at.as_millisecond()))
    }
}

fn offset(zone: &str) -> Option<Offset> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|digit| *digit != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = (digits[..2].parse::<i32>().ok()?, digits[2..].parse::<i32>().ok()?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

fn value(attribute: &quick_xml::events::attributes::Attribute<'_>) -> Result<String, DaticertError> {
    let raw = String::from_utf8_lossy(&attribute.value);
    let plain = quick_xml::escape::unescape(&raw).map_err(|_| DaticertError::Entity)?;
    let mut kept = String::new();
    append(&mut kept, plain.trim());
    Ok(kept)
}

fn resolve(reference: &BytesRef<'_>) -> Result<String, DaticertError> {
    if let Some(character) = reference.resolve_char_ref().map_err(|_| DaticertError::Entity)? {
        return Ok(character.to_string());
    }
    let name = String::from_utf8_lossy(reference);
    resolve_xml_entity(&name).map(str::to_owned).ok_or(DaticertError::Entity)
}

/// Appends up to the limit of an element's text.
fn append(text: &mut String, piece: &str) {
    let room = TEXT_BYTES_MAX.saturating_sub(text.len());
    text.push_str(&piece[..piece.floor_char_boundary(room)]);
}
