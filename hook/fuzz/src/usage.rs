//! What peers publish on their usage pages can reach in a meter that reads them: no panic, and no more than their shares.
//!
//! The process under test keeps the card busy without a pause. Records of twenty bytes say how long each of its kernels
//! takes and what one or two peers publish at that time.

use super::card::Card;
use gpucap_core::sync::Word;
use gpucap_core::throttle::{
    Allowance, Bucket, Launch, Meter, PeerReport, Signature, UsageReport, Verdict,
};
use gpucap_core::units::{ComputeLimit, Share};
use std::sync::Arc;

/// A record: for how long a kernel runs, who tells something, and the two words of it.
const RECORD: usize = 20;
/// More make no other case, but a slow one.
const MOST_RECORDS: usize = 64;
const START: u64 = 1_000_000_000_000;
/// The shares of the four containers that tell something, in percent.
const SHARES: [u16; 4] = [1, 10, 20, 30];

/// What peers publish, kernel by kernel.
pub fn usage(bytes: &[u8]) {
    let word = Word::default();
    let mut meter = Meter::new(Bucket::new(&word, Share::FULL), START);
    let (stream, allowance, mut now) = (meter.stream(START), Arc::<Allowance>::default(), START);
    let launch = Launch::kernel(Signature::kernel(1, 1));
    let (mut busy_ns, mut reported) = (0, [0; SHARES.len()]);
    for record in bytes.chunks_exact(RECORD).take(MOST_RECORDS) {
        let takes = 1 + number(&record[..4]) % 50_000_000;
        if let Verdict::Admit(permit) =
            meter.before_launch(stream, &allowance, launch, now, &mut Card)
        {
            meter.launched(permit, now, Some([now, now + takes]), &mut Card);
            busy_ns += takes;
        }
        meter.take_reports(
            peers(record, now)
                .inspect(|(place, _)| reported[*place] = SHARES[*place])
                .map(|it| it.1),
            now,
        );
        now += takes;
        meter.take_reports(peers(record, now).map(|it| it.1), now);
        meter.settle_finished(now, &mut Card);
        let _ = meter.usage_report();
    }
    meter.settle_all(now, &mut Card);
    let charged_ns = meter.totals().busy_ns;
    assert!(charged_ns <= busy_ns, "charged {charged_ns} of {busy_ns}");
    // A page counts at its share of 9/8 of the time, and of 200 ms that are taken as saved: once in the mean, and once at
    // most, since either may be spent when the other one is not. Beside it, reports that are late and rounding, for
    // which the tests of `turns` allow as much.
    let shares: u64 = reported.map(u64::from).iter().sum();
    let given_ns = ((now - START) * 9 / 8 + 2 * 200_000_000) * shares / 100;
    let given_ns = given_ns + given_ns / 100 + 1_100_000;
    assert!(charged_ns + given_ns >= busy_ns, "charged {charged_ns} of {busy_ns}, less {given_ns}");
}

/// One or two peers and their places in [`SHARES`], of which the second one says two words together with what the first
/// one says.
fn peers(record: &[u8], now: u64) -> impl Iterator<Item = (usize, PeerReport)> {
    let who = record[3] >> 4;
    let (work, occupied) = (number(&record[4..12]), number(&record[12..20]));
    // Half of what is reported is a time that may be, the other half any number.
    let words = if who & 8 == 0 { (work, occupied) } else { (now.wrapping_add(work) >> 1, now) };
    let [first, second] =
        [words, (words.1, words.0)].map(|(work, occupied)| UsageReport { work, occupied });
    let together = UsageReport::together([first, second].into_iter(), now).after(second, now);
    let peers = [first, together].into_iter().take(1 + usize::from(who >> 2 & 1));
    peers.zip(usize::from(who & 3)..).map(|(report, page)| {
        let place = page % SHARES.len();
        let (page, share) = (place as u64, Share::from_percent(SHARES[place]));
        let limit = share.map(ComputeLimit::fixed);
        (place, PeerReport { page, limit, key: page, report })
    })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
