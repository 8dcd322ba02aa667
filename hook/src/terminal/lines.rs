//! Lines that fit a terminal, and an issue report that they are copied into.
//!
//! Colours take no place.

use anstream::adapter::strip_str;

/// As wide as a line may be where no terminal says its width.
pub(crate) const WIDTH: usize = 80;
const GAP: &str = "   ";

/// Joins parts side by side in lines of at most `most` places, indented by `indent` blanks; a part that does not fit begins a line of its own.
pub(crate) fn flow(most: usize, indent: usize, parts: &[String]) -> String {
    let (mut text, mut line) = (String::new(), " ".repeat(indent));
    for part in parts {
        let is_first = line.trim().is_empty();
        let gap = if is_first { "" } else { GAP };
        if !is_first && width(&line) + gap.len() + width(part) > most {
            text.push_str(&line);
            text.push('\n');
            line = format!("{}{part}", " ".repeat(indent));
        } else {
            line.push_str(gap);
            line.push_str(part);
        }
    }
    text + &line + "\n"
}

/// Stands for what was cut; one place wide.
const MORE: char = '…';

/// The beginning of a line: as much as fits in `most` places, and without colours if that is not all.
pub(crate) fn cut(most: usize, line: &str) -> String {
    if width(line) <= most {
        return line.to_owned();
    }
    let start = strip_str(line).flat_map(str::chars).take(most.saturating_sub(1));
    let start: String = start.collect();
    format!("{}{MORE}", start.trim_end())
}

/// The beginning and the end of a word, the end the longer: as much as fits in `most` places.
pub(crate) fn cut_middle(most: usize, word: &str) -> String {
    let all = word.chars().count();
    if all <= most {
        return word.to_owned();
    }
    let kept = most.saturating_sub(1);
    let start: String = word.chars().take(kept / 2).collect();
    let end: String = word.chars().skip(all - (kept - kept / 2)).collect();
    format!("{start}{MORE}{end}")
}

/// How many places a text takes.
fn width(text: &str) -> usize {
    strip_str(text).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn what_fits_stands_beside_and_the_rest_below() {
        assert_eq!(flow(WIDTH, 2, &parts(&["one", "two"])), "  one   two\n");
        assert_eq!(flow(11, 2, &parts(&["one", "two"])), "  one   two\n");
        assert_eq!(flow(10, 2, &parts(&["one", "two"])), "  one\n  two\n");
        let (long, exact) = ("x".repeat(70), "y".repeat(WIDTH - 2));
        assert_eq!(flow(WIDTH, 2, &parts(&[&long, "seven77"])), format!("  {long}\n  seven77\n"));
        assert_eq!(flow(WIDTH, 2, &parts(&[&exact])), format!("  {exact}\n"));
        assert_eq!(flow(WIDTH, 2, &parts(&[&long, "fivex"])), format!("  {long}   fivex\n"));
        assert_eq!(flow(WIDTH, 2, &parts(&[&long, "sixsix"])), format!("  {long}\n  sixsix\n"));
    }

    #[test]
    fn a_colour_takes_no_place() {
        assert_eq!(width("\x1b[33m3 refused\x1b[0m"), 9);
        assert_eq!(width("plain"), 5);
    }

    #[test]
    fn a_line_that_is_too_long_says_so() {
        let fits = "x".repeat(WIDTH);
        assert_eq!(cut(WIDTH, &fits), fits);
        let cut = cut(WIDTH, &format!("{fits}y"));
        assert_eq!((cut.chars().count(), cut.ends_with("x…")), (WIDTH, true));
        assert_eq!(cut_middle(9, "web/train"), "web/train");
        assert_eq!(cut_middle(8, "web/train"), "web…rain");
        assert_eq!(cut_middle(1, "web/train"), "…");
    }
}
