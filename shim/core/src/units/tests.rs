//! What each form of a quantity means, and which texts are none.

use proptest::prelude::*;

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

#[test]
fn every_form_of_a_size_is_exact() {
    for (text, bytes) in [
        ("1", 1),
        ("4294967296", 4 * GIB),
        ("18446744073709551615", u64::MAX),
        ("4Gi", 4 * GIB),
        ("4GiB", 4 * GIB),
        ("4096Mi", 4 * GIB),
        ("4096MiB", 4 * GIB),
        ("4194304Ki", 4 * GIB),
        ("1Ti", TIB),
        ("4G", 4_000_000_000),
        ("4GB", 4_000_000_000),
        ("4M", 4_000_000),
        ("4MB", 4_000_000),
        ("4K", 4_000),
        ("4k", 4_000),
        ("4T", 4_000_000_000_000),
        ("4gi", 4 * GIB),
        ("4gib", 4 * GIB),
        ("4gb", 4_000_000_000),
        ("4g", 4_000_000_000),
        ("4mi", 4 * MIB),
        ("4mib", 4 * MIB),
        ("4mb", 4_000_000),
        ("1.5Gi", 1_610_612_736),
        ("0.5Gi", GIB / 2),
        ("1.50G", 1_500_000_000),
        ("1.0", 1),
        ("0.0009765625Mi", KIB),
        ("0.0000000000009094947017729282379150390625Ti", 1),
        ("007", 7),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
}

#[test]
fn so_few_bytes_that_nothing_fits_are_doubted() {
    for (bytes, meant) in [(1, "1Gi"), (4, "4Gi"), (1023, "1023Gi"), (4096, "4096Mi")] {
        let doubt = Bytes(bytes).doubt().map(|doubt| doubt.to_string());
        let expected = format!("nothing fits into {bytes} bytes; is {meant} meant?");
        assert_eq!(doubt, Some(expected));
    }
    assert!(Bytes(MIB - 1).doubt().is_some());
    assert_eq!([Bytes(MIB).doubt(), Bytes(u64::MAX).doubt()], [None, None]);
    assert_eq!(Amount::OfDevice(Share::FULL).doubt(), None);
}

#[test]
fn what_is_no_size_is_refused_with_its_reason() {
    use UnitError::*;
    for (text, why) in [
        ("", NotANumber),
        ("abc", NotANumber),
        ("Gi", NotANumber),
        (".5Gi", NotANumber),
        ("5.", NotANumber),
        ("5.Gi", NotANumber),
        ("+5", NotANumber),
        (" 5", NotANumber),
        ("\u{0664}Gi", NotANumber),
        ("inf", NotANumber),
        ("nan", NotANumber),
        ("-1", Negative),
        ("-4Gi", Negative),
        ("0", Zero),
        ("0Gi", Zero),
        ("0.0Gi", Zero),
        ("5gg", UnknownSuffix),
        ("5b", UnknownSuffix),
        ("5i", UnknownSuffix),
        ("5GiBB", UnknownSuffix),
        ("5 Gi", UnknownSuffix),
        ("1e9", UnknownSuffix),
        ("0x10", UnknownSuffix),
        ("1_000", UnknownSuffix),
        ("4,5Gi", UnknownSuffix),
        ("5%", UnknownSuffix),
        ("1.5.5Gi", UnknownSuffix),
        ("5Pi", UnknownSuffix),
        ("5m", Milli),
        ("1.5", PartOfAByte),
        ("0.3Ki", PartOfAByte),
        ("0.1Gi", PartOfAByte),
        ("18446744073709551616", TooLarge),
        ("17179869184Gi", TooLarge),
        ("16777216Ti", TooLarge),
        ("99999999999999999999999999999999999999999999999999Gi", TooLarge),
    ] {
        assert_eq!(text.parse::<Bytes>(), Err(why), "{text}");
    }
}

#[test]
fn the_largest_size_is_accepted_and_one_more_is_not() {
    assert_eq!("16777215.9999990463256835937500Ti".parse(), Ok(Bytes(u64::MAX - MIB + 1)));
    assert_eq!("18446744073709551.615K".parse(), Ok(Bytes(u64::MAX)));
    assert_eq!("18446744073709551.616K".parse::<Bytes>(), Err(UnitError::TooLarge));
}

#[test]
fn a_share_is_from_1_to_100_percent() {
    for (text, parts) in [
        ("1", 100),
        ("30", 3_000),
        ("100", 10_000),
        ("30%", 3_000),
        ("12.5", 1_250),
        ("14.28%", 1_428),
        ("99.99", 9_999),
        ("30.000", 3_000),
    ] {
        assert_eq!(text.parse::<Share>().map(Share::parts), Ok(parts), "{text}");
    }
    for (text, why) in [
        ("", UnitError::NotANumber),
        ("abc", UnitError::NotANumber),
        ("-1", UnitError::Negative),
        ("0", UnitError::NotAPercentage),
        ("0.99", UnitError::NotAPercentage),
        ("100.01", UnitError::NotAPercentage),
        ("101", UnitError::NotAPercentage),
        ("200%", UnitError::NotAPercentage),
        ("65636", UnitError::NotAPercentage),
        ("99999999999999999999999", UnitError::NotAPercentage),
        ("30%%", UnitError::NotAPercentage),
        ("30 %", UnitError::NotAPercentage),
        ("30Gi", UnitError::NotAPercentage),
        ("33.333", UnitError::TooPrecise),
    ] {
        assert_eq!(text.parse::<Share>(), Err(why), "{text}");
    }
}

#[test]
fn an_amount_is_a_size_or_a_percentage() {
    assert_eq!("4Gi".parse(), Ok(Amount::Bytes(Bytes(4 * GIB))));
    assert_eq!("25%".parse::<Amount>().map(|amount| amount.of(16 * GIB)), Ok(4 * GIB));
    assert_eq!("12.5%".parse::<Amount>().map(|amount| amount.of(16 * GIB)), Ok(2 * GIB));
    assert_eq!("100%".parse::<Amount>().map(|amount| amount.of(u64::MAX)), Ok(u64::MAX));
    assert_eq!("1%".parse::<Amount>().map(|amount| amount.of(99)), Ok(0));
    assert_eq!("200%".parse::<Amount>(), Err(UnitError::NotAPercentage));
    assert_eq!("%".parse::<Amount>(), Err(UnitError::NotANumber));
    // A number without a unit is bytes, never percent.
    assert_eq!("25".parse(), Ok(Amount::Bytes(Bytes(25))));
}

#[test]
fn quantities_are_printed_for_people() {
    for (bytes, text) in [
        (0, "0"),
        (1, "1"),
        (1_000, "1KB"),
        (1_023, "1023"),
        (4 * GIB, "4GiB"),
        (4_864 * MIB, "4864MiB"),
        (1_610_612_736, "1536MiB"),
        (4_000_000_000, "4GB"),
        (1_024_000, "1000KiB"),
        (u64::MAX, "18446744073709551615"),
    ] {
        assert_eq!(Bytes(bytes).to_string(), text);
    }
    for (parts, text) in [(10_000, "100%"), (1_428, "14.28%"), (1_250, "12.5%"), (101, "1.01%")] {
        assert_eq!(Share::from_parts(parts).map(|share| share.to_string()).as_deref(), Some(text));
    }
}

#[test]
fn a_share_outside_its_bounds_cannot_be_made() {
    assert_eq!(Share::from_parts(99), None);
    assert_eq!(Share::from_parts(10_001), None);
    assert_eq!(Share::from_percent(0), None);
    assert_eq!(Share::from_percent(101), None);
    assert_eq!(Share::from_percent(u16::MAX), None);
    assert_eq!(Share::from_percent(100), Some(Share::FULL));
}

proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in ".*") {
        let _ = (text.parse::<Bytes>(), text.parse::<Share>(), text.parse::<Amount>());
    }

    #[test]
    fn number_like_text_never_makes_the_parsers_panic(
        text in "-?[0-9]{0,60}\\.?[0-9]{0,60}[kKmMgGtTiIbB%]{0,4}"
    ) {
        let _ = (text.parse::<Bytes>(), text.parse::<Share>(), text.parse::<Amount>());
    }

    #[test]
    fn printed_sizes_parse_to_themselves(bytes in 1_u64.., shift in 0_u32..40) {
        for bytes in [Bytes(bytes), Bytes((bytes >> 44).max(1) << shift)] {
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }

    #[test]
    fn printed_shares_parse_to_themselves(parts in 100_u16..=10_000) {
        let share = Share::from_parts(parts).unwrap();
        prop_assert_eq!(share.to_string().parse(), Ok(share));
        prop_assert_eq!(Amount::OfDevice(share).to_string().parse(), Ok(Amount::OfDevice(share)));
    }

    #[test]
    fn a_decimal_fraction_is_the_exact_product(thousandths in 1_u64..1 << 40) {
        let text = format!("{}.{:03}K", thousandths / 1_000, thousandths % 1_000);
        prop_assert_eq!(text.parse(), Ok(Bytes(thousandths)));
    }

    #[test]
    fn shares_that_fill_the_card_never_exceed_it(parts in 100_u16..=9_900, total: u64) {
        let rest = Share::from_parts(10_000 - parts).unwrap();
        let both = Share::from_parts(parts).unwrap().of(total).checked_add(rest.of(total));
        prop_assert!(both.is_some_and(|both| both <= total));
    }
}
