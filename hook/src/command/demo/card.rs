//! What `gpucap-demo` prints, read back. Pure.

/// The card as a program sees it, in MiB.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Card {
    pub(super) total: u64,
    pub(super) free: u64,
    /// Used and total in each line of the table; empty where there is no NVML. Which of the lines is CUDA's first
    /// device, is not said: the two count differently.
    pub(super) table: Vec<(u64, u64)>,
}

impl Card {
    /// Reads the output; `None` if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.contains(" MiB in all, "))?;
        let (total, free) = line.trim().split_once(" MiB in all, ")?;
        let free = free.strip_suffix(" MiB free")?;
        Some(Self { total: total.parse().ok()?, free: free.parse().ok()?, table: table(text) })
    }
}

/// Used and total MiB of the devices in a table.
pub(super) fn table(text: &str) -> Vec<(u64, u64)> {
    let row = |line: &str| {
        let (used, total) = line.split_once("MiB /")?;
        let total = total.trim().strip_suffix("MiB |")?;
        Some((used.rsplit(' ').next()?.parse().ok()?, total.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_is_read_back() {
        let text = "CUDA  Stub GPU\n      81920 MiB in all, 81620 MiB free\n+--+\n\
                    |   0 | Stub GPU                   |    300MiB /  81920MiB |\n\
                    |   1 | Stub GPU                   |      0MiB /  81920MiB |\n+--+\n";
        let card = Card { total: 81_920, free: 81_620, table: vec![(300, 81_920), (0, 81_920)] };
        assert_eq!(Card::parse(text), Some(card));
        let without = "CUDA  A\n      1 MiB in all, 0 MiB free\nNVML  not here\n";
        assert_eq!(Card::parse(without), Some(Card { total: 1, free: 0, table: vec![] }));
        assert_eq!(Card::parse("CUDA  A\n"), None);
    }
}
