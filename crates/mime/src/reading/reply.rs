//! The new text of a reply, without the quoted mail.
//!
//! Mail programs quote in three ways: with `>` before each line and an attribution line above them, with a
//! divider such as "-----Original Message-----", or with the header of the old mail as a block of fields.
//! Answers between quoted lines are kept. If nothing is left, because the author wrote only inside the quote,
//! the whole text is returned: too much text is better than none.

/// The maximum number of lines of an attribution; long ones are wrapped.
const ATTRIBUTION_LINES_MAX: usize = 3;
/// The maximum length of an attribution, in characters.
const ATTRIBUTION_CHARS_MAX: usize = 400;
/// The minimum number of consecutive fields that make a header of an old mail.
const HEADER_FIELDS_MIN: usize = 3;
/// The maximum number of lines of such a header that are read.
const HEADER_LINES_MAX: usize = 12;
/// The longest name of a field in such a header, in characters.
const FIELD_NAME_CHARS_MAX: usize = 16;

/// The new text of a reply.
pub fn new_text(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let end = (0..lines.len()).find(|at| begins_old_mail(&lines, *at)).unwrap_or(lines.len());
    let mut kept: Vec<&str> = Vec::with_capacity(end);
    let mut in_quote = false;
    for line in &lines[..end] {
        let is_quoted = line.trim_start().starts_with('>');
        if is_quoted && !in_quote {
            drop_attribution(&mut kept);
        }
        // A blank line inside a quote does not end the quote.
        in_quote = is_quoted || (in_quote && line.trim().is_empty());
        if !is_quoted {
            kept.push(line);
        }
    }
    let new = joined(&kept);
    if new.is_empty() { joined(&lines) } else { new }
}

/// Joins the lines, with at most one blank line in a row and none at the ends.
fn joined(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut blank = false;
    for line in lines {
        if line.trim().is_empty() {
            blank = !text.is_empty();
            continue;
        }
        if !text.is_empty() {
            text.push_str(if blank { "\n\n" } else { "\n" });
        }
        text.push_str(line);
        blank = false;
    }
    text
}

/// Removes the attribution before a quote, which says who wrote it and when: it ends with a colon and has a
/// date or an address. If it was wrapped, preceding lines with a date or an address belong to it.
fn drop_attribution(kept: &mut Vec<&str>) {
    let window = kept.len().saturating_sub(2 * ATTRIBUTION_LINES_MAX);
    let Some(last) = (window..kept.len()).rfind(|at| !kept[*at].trim().is_empty()) else { return };
    let has_mark = |line: &str| line.contains('@') || line.chars().filter(char::is_ascii_digit).count() >= 3;
    let mut begin = last;
    while begin > window && last - begin + 1 < ATTRIBUTION_LINES_MAX {
        let above = kept[begin - 1].trim_end();
        if !has_mark(above) || above.ends_with(['.', '!', '?']) {
            break;
        }
        begin -= 1;
    }
    let said = kept[begin..=last].join(" ");
    let ends = said.trim_end().ends_with([':', '：']);
    if ends && has_mark(&said) && said.chars().count() <= ATTRIBUTION_CHARS_MAX {
        kept.truncate(begin);
    }
}

/// Whether the old mail begins at this line, so that no new text follows.
fn begins_old_mail(lines: &[&str], at: usize) -> bool {
    let line = lines[at].trim();
    is_divider(line) || (is_field(line) && is_header(lines, at))
}

/// `-----OriginalMessage Message-----`, in any language: words between runs of dashes.
fn is_divider(line: &str) -> bool {
    let inner = line.trim_matches('-').trim();
    let dashes = line.chars().take_while(|c| *c == '-').count();
    dashes >= 4 && line.ends_with("----") && !inner.is_empty() && inner.chars().count() <= 60
}

/// Whether the header of an old mail begins here: several fields in a row, the first after a blank line or a
/// rule, one of them with an address or a date.
fn is_header(lines: &[&str], at: usize) -> bool {
    let is_rule =
        |line: &str| line.chars().count() >= 5 && line.chars().all(|c| matches!(c, '_' | '-' | '='));
    let is_alone = at == 0 || lines[at - 1].trim().is_empty() || is_rule(lines[at - 1].trim());
    if !is_alone {
        return false;
    }
    let block = lines[at..].iter().take(HEADER_LINES_MAX).map(|line| line.trim());
    let block: Vec<&str> = block.take_while(|line| !line.is_empty()).collect();
    let fields = block.iter().take_while(|line| is_field(line)).count();
    let head = &block[..fields];
    let has_address = head.iter().any(|line| line.contains('@'));
    let has_date = head.iter().any(|line| line.chars().filter(char::is_ascii_digit).count() >= 5);
    fields >= HEADER_FIELDS_MIN && (has_address || has_date) && head[0].chars().any(char::is_uppercase)
}

/// `From: somebody`, also in bold (`*From:* somebody`) as some programs write it.
fn is_field(line: &str) -> bool {
    let line = line.trim_start_matches('*');
    let Some((name, value)) = line.split_once([':', '：']) else { return false };
    let name = name.trim_end_matches('*').trim();
    (1..=FIELD_NAME_CHARS_MAX).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '-')
        && !value.trim_start_matches('*').trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_and_who_is_quoted_goes() {
        for (text, new) in [
            (
                "Thanks!\r\n\r\nOn Mon, 3 Nov 2026 at 10:00, Shop <shop@example.com> wrote:\r\n> Your order\r\n> is here\r\n",
                "Thanks!",
            ),
            ("Danke.\n\nAm 03.11.26 um 10:00 schrieb Shop:\n\n> Ihre Bestellung\n", "Danke."),
            (
                "Merci\n\nLe lun. 3 nov. 2026 à 10:00, Shop\n<shop@example.com> a écrit :\n\n> Bonjour\n",
                "Merci",
            ),
            ("はい\n\n2026年11月3日 10:00 Shop <shop@example.com>：\n> 注文\n", "はい"),
            ("> Is it blue?\nYes.\n> And large?\nNo.\n", "Yes.\nNo."),
            ("Fine.\n-----Original Message-----\nFrom: Shop\nHello\n", "Fine."),
            ("Gut.\n\n---- Ursprüngliche Nachricht ----\nHallo\n", "Gut."),
            (
                "Ok\n\n________________________________\nFrom: Shop <shop@example.com>\nSent: Monday\nTo: Ada\nSubject: Order\n\nYour order\n",
                "Ok\n\n________________________________",
            ),
            (
                "Ok\n\n*Von:* Shop <shop@example.com>\n*Gesendet:* Montag\n*An:* Ada\n*Betreff:* x\n\nHallo\n",
                "Ok",
            ),
        ] {
            let cut = new_text(text);
            assert_eq!(cut.trim_end_matches(['_', '\n']), new.trim_end_matches(['_', '\n']), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_quote_stays() {
        for text in [
            "I need three things:\n\n- one\n- two",
            "Name: Ada\nSize: 5\nthanks",
            "Please send it to: ada@example.net",
            "a > b, and -- well",
            "Dear shop,\n\nit is 5:30 now.\n\n--\nAda",
        ] {
            assert_eq!(new_text(text), text, "{text}");
        }
        assert_eq!(new_text("> all\n> quoted"), "> all\n> quoted", "rather too much than nothing");
        assert_eq!(new_text(""), "");
        let list = "My questions for 2026 are:\n\nno quote follows";
        assert_eq!(new_text(list), list);
    }

    #[test]
    fn a_text_of_any_shape_is_cut_in_little_time() {
        for hostile in [
            "> ".repeat(200_000),
            ">\n".repeat(200_000),
            "a:\n".repeat(200_000),
            "x:\n>\n".repeat(99_999),
            "-----\nA: b\n".repeat(99_999),
        ] {
            assert!(new_text(&hostile).len() <= hostile.len());
        }
        let fields = "From: a@b\n".repeat(100_000);
        assert!(new_text(&fields).len() <= fields.len());
    }
}
