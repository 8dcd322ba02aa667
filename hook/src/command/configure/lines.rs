//! Line ends: those of a file stay, though the TOML library writes `\n` alone.

/// The new text with the line ends of the old one. Lines with which both begin or end stay to the byte; one between ends
/// as the old one in its place, or as the line before it.
pub(super) fn ended_like(old: &str, new: &str) -> String {
    if !old.contains("\r\n") {
        return new.to_owned();
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let same = |pair: &(&&str, &&str)| bare(pair.0) == bare(pair.1);
    let head = old.iter().zip(&new).take_while(same).count();
    let rest = (&old[head..], &new[head..]);
    let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(same).count();
    let mut text = old[..head].concat();
    let mut places = rest.0[..rest.0.len() - tail].iter();
    for line in &rest.1[..rest.1.len() - tail] {
        let crlf = places.next().map_or_else(|| text.ends_with("\r\n"), |it| it.ends_with("\r\n"));
        text.push_str(bare(line));
        if line.ends_with('\n') {
            text.push_str(if crlf { "\r\n" } else { "\n" });
        }
    }
    text + &old[old.len() - tail..].concat()
}

/// A line without its end.
fn bare(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_keeps_its_ends() {
        for (old, new, after) in [
            ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
            ("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"),
            ("a\nb\r\nc\n", "a\nb\nx\nc\n", "a\nb\r\nx\r\nc\n"),
            ("a\r\nb\nc\n", "a\nx\ny\nc\n", "a\r\nx\ny\nc\n"),
            ("a\r\nx\r\nb", "a\nb", "a\r\nb"),
            ("a\r\n", "a\nb", "a\r\nb"),
            ("a\r\n", "", ""),
        ] {
            assert_eq!(ended_like(old, new), after, "{old:?} {new:?}");
        }
    }
}
