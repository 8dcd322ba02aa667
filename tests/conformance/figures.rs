//! Which words of an answer say how full a card is, who uses it, or how many files a process has open.
//!
//! They differ between two moments of one card, and between a slice and the whole; only codes can be compared there. An
//! answer of `tools/caller.c` is a code, the eight slots and a sum over the buffers, so a figure stays in
//! sight until the program ends.

/// Functions that put such figures into slots.
const INTO_SLOTS: [&str; 3] = ["cuMemGetInfo", "cuDeviceTotalMem", "ExportToShareableHandle"];
/// Functions that put them into buffers.
const INTO_BUFFERS: [&str; 2] = ["nvmlDeviceGet", "ExportToShareableHandle"];
/// Functions whose code says whether there is a process to list and whether the list had room.
const OF_PROCESSES: &str = "Process";
const LISTED: [&str; 3] = ["0", "6", "7"];
const CODE: usize = 0;
/// Where in an answer the slots and the sum stand.
const SLOTS: usize = 1;
const SUM: usize = 9;

/// Takes the figures out of the answers to a script, in the order of its lines.
pub(crate) fn leave_out(script: &[&str], answers: &mut [String]) {
    let mut masked = [false; SUM + 1];
    for (line, answer) in script.iter().zip(answers) {
        if INTO_SLOTS.iter().any(|name| line.contains(name)) {
            for slot in line.split(' ').filter_map(|word| word.strip_prefix('&')?.bytes().next()) {
                masked[SLOTS + usize::from(slot - b'a')] = true;
            }
        }
        masked[SUM] |= INTO_BUFFERS.iter().any(|name| line.contains(name));
        masked[CODE] = line.contains(OF_PROCESSES)
            && LISTED.iter().any(|code| answer.split(' ').next() == Some(code));
        let words = answer.split(' ').enumerate();
        let word = |(place, word)| if masked.get(place) == Some(&true) { "figure" } else { word };
        *answer = words.map(word).collect::<Vec<_>>().join(" ");
    }
}
