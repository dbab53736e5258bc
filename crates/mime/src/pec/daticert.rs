//! `daticert.xml`: what a provider certifies, as XML (RFC 6109, 4.4).
//!
//! The file is small and flat, and is read as such: bounded in size, depth, attributes and recipients. There is no
//! document type and there are no entities but the five of XML and character references; a file that has others is
//! refused whole rather than read in part. Unknown elements are passed over and unknown values kept. Encodings are
//! those mail has; text that is not in the encoding it declares is read as far as it goes.

use jiff::{civil::DateTime, tz::Offset};
use postway_domain::Time;
use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::{encoding::decode, receipt::ReceiptRecipient};

const BYTES_MAX: usize = 1024 * 1024;
const DEPTH_MAX: usize = 16;
const ATTRIBUTES_MAX: usize = 32;
const RECIPIENTS_MAX: usize = 10_000;
/// The longest text of an element that is kept; what is longer is cut off.
const TEXT_BYTES_MAX: usize = 4096;

/// Why a `daticert.xml` was not read. The receipt is then read from its header alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DaticertError {
    /// The transfer encoding of the part is broken.
    #[error("the transfer encoding of daticert.xml is broken")]
    Encoding,
    /// More bytes than any provider sends.
    #[error("daticert.xml has more than {BYTES_MAX} bytes")]
    TooLarge,
    /// Elements inside each other without end.
    #[error("daticert.xml is more than {DEPTH_MAX} elements deep")]
    TooDeep,
    /// An element with more attributes than the format has.
    #[error("an element of daticert.xml has more than {ATTRIBUTES_MAX} attributes")]
    TooManyAttributes,
    /// More recipients than a certified mail may have.
    #[error("daticert.xml names more than {RECIPIENTS_MAX} recipients")]
    TooManyRecipients,
    /// A document type, which could define entities.
    #[error("daticert.xml has a document type, which is not read")]
    DocumentType,
    /// An entity that XML does not predefine.
    #[error("daticert.xml has an entity that XML does not predefine")]
    Entity,
    /// It is XML about something else.
    #[error("daticert.xml does not hold a postacert element")]
    NotPostacert,
    /// It is no XML.
    #[error("daticert.xml is malformed at byte {0}")]
    Malformed(u64),
}

/// What the file says; names and notation are those of [`super::Receipt`].
#[derive(Debug, Default)]
pub(super) struct Certified {
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

/// Where in the document an element is, as far as that matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Heading,
    Data,
    Date,
    Leaf(Leaf),
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaf {
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

fn place(parent: Place, name: &[u8]) -> Place {
    match (parent, name) {
        (Place::Root, b"intestazione") => Place::Heading,
        (Place::Root, b"dati") => Place::Data,
        (Place::Heading, b"mittente") => Place::Leaf(Leaf::Sender),
        (Place::Heading, b"destinatari") => Place::Leaf(Leaf::Recipient),
        (Place::Heading, b"oggetto") => Place::Leaf(Leaf::Subject),
        (Place::Data, b"gestore-emittente") => Place::Leaf(Leaf::Provider),
        (Place::Data, b"data") => Place::Date,
        (Place::Date, b"giorno") => Place::Leaf(Leaf::Day),
        (Place::Date, b"ora") => Place::Leaf(Leaf::Hour),
        (Place::Data, b"identificativo") => Place::Leaf(Leaf::Identifier),
        (Place::Data, b"msgid") => Place::Leaf(Leaf::Reference),
        (Place::Data, b"ricevuta") => Place::Leaf(Leaf::Form),
        (Place::Data, b"consegna") => Place::Leaf(Leaf::DeliveredTo),
        (Place::Data, b"ricezione") => Place::Leaf(Leaf::ReceivedFor),
        (Place::Data, b"errore-esteso") => Place::Leaf(Leaf::ErrorText),
        _ => Place::Elsewhere,
    }
}

/// Reads the bytes of a `daticert.xml`.
pub(super) fn read(bytes: &[u8]) -> Result<Certified, DaticertError> {
    if bytes.len() > BYTES_MAX {
        return Err(DaticertError::TooLarge);
    }
    let document = decode(bytes);
    let mut reader = Reader::from_str(&document);
    reader.config_mut().expand_empty_elements = true;
    let mut certified = Certified::default();
    let mut open: Vec<Place> = Vec::new();
    let mut seen_root = false;
    let mut text = String::new();
    loop {
        let event = reader.read_event().map_err(|_| DaticertError::Malformed(reader.error_position()))?;
        match event {
            Event::Start(element) => {
                if open.len() == DEPTH_MAX {
                    return Err(DaticertError::TooDeep);
                }
                let found = match open.last() {
                    Some(parent) => place(*parent, element.name().as_ref()),
                    None if !seen_root && element.name().as_ref() == b"postacert" => Place::Root,
                    None => return Err(DaticertError::NotPostacert),
                };
                seen_root = true;
                certified.take_attributes(found, &element)?;
                text.clear();
                open.push(found);
            }
            Event::End(_) => {
                if let Some(Place::Leaf(leaf)) = open.pop() {
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
    certified.at = certified.moment();
    Ok(certified)
}

impl Certified {
    fn take_attributes(&mut self, place: Place, element: &BytesStart<'_>) -> Result<(), DaticertError> {
        self.recipient_kind = None;
        // The check for names given twice compares each with each; the first one counts here.
        for (index, attribute) in element.attributes().with_checks(false).enumerate() {
            if index == ATTRIBUTES_MAX {
                return Err(DaticertError::TooManyAttributes);
            }
            let Ok(attribute) = attribute else { continue };
            let target = match (place, attribute.key.as_ref()) {
                (Place::Root, b"tipo") => &mut self.kind,
                (Place::Root, b"errore") => &mut self.error,
                (Place::Date, b"zona") => &mut self.zone,
                (Place::Leaf(Leaf::Form), b"tipo") => &mut self.form,
                (Place::Leaf(Leaf::Recipient), b"tipo") => &mut self.recipient_kind,
                _ => continue,
            };
            if target.is_none() {
                *target = Some(value(&attribute)?);
            }
        }
        Ok(())
    }

    fn take_text(&mut self, leaf: Leaf, text: &str) -> Result<(), DaticertError> {
        if text.is_empty() {
            return Ok(());
        }
        let target = match leaf {
            Leaf::Recipient | Leaf::ReceivedFor
                if self.recipients.len() + self.received_for.len() >= RECIPIENTS_MAX =>
            {
                return Err(DaticertError::TooManyRecipients);
            }
            Leaf::Recipient => {
                let kind = self.recipient_kind.take();
                self.recipients.push(ReceiptRecipient { address: text.to_owned(), kind });
                return Ok(());
            }
            Leaf::ReceivedFor => {
                self.received_for.push(text.to_owned());
                return Ok(());
            }
            Leaf::Form => return Ok(()),
            Leaf::Sender => &mut self.sender,
            Leaf::Subject => &mut self.subject,
            Leaf::Provider => &mut self.provider,
            Leaf::Day => &mut self.day,
            Leaf::Hour => &mut self.hour,
            Leaf::Identifier => &mut self.identifier,
            Leaf::Reference => &mut self.reference,
            Leaf::DeliveredTo => &mut self.delivered_to,
            Leaf::ErrorText => &mut self.error_text,
        };
        target.get_or_insert_with(|| text.to_owned());
        Ok(())
    }

    /// `giorno` as dd/mm/yyyy, `ora` as hh:mm:ss and `zona` as ±hhmm. Without a zone the moment is not known.
    fn moment(&self) -> Option<Time> {
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
    if let Some(found) = reference.resolve_char_ref().map_err(|_| DaticertError::Entity)? {
        return Ok(found.to_string());
    }
    let name = String::from_utf8_lossy(reference);
    resolve_xml_entity(&name).map(str::to_owned).ok_or(DaticertError::Entity)
}

/// Appends up to the limit of an element's text.
fn append(text: &mut String, piece: &str) {
    let room = TEXT_BYTES_MAX.saturating_sub(text.len());
    text.push_str(&piece[..piece.floor_char_boundary(room)]);
}
