//! The slices of claims that a container has, as its record keeps them.
//!
//! A record names them by their ids, by which no two containers have one, and beside these the GPU and the claim of each,
//! for people. Records of earlier releases have the ids alone.

use gpucap_plan::Slice;
use serde_json::{Value, json};

/// Slices, in the order of the container's hooks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Slices(Vec<HeldSlice>);

/// One of them.
#[derive(Clone, Debug, Eq, PartialEq)]
struct HeldSlice {
    id: String,
    /// The GPU and the claim, `namespace/name`, if the record says so.
    of: Option<[String; 2]>,
}

impl Slices {
    /// Those in these words of the container's hooks.
    pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a String>) -> Self {
        let held = |slice: Slice| HeldSlice {
            id: slice.id,
            of: Some([slice.gpu.to_string(), slice.claim]),
        };
        Self(words.into_iter().flat_map(|word| word.parse()).map(held).collect())
    }

    /// Reads them in a record.
    pub(crate) fn of_record(record: &Value) -> Self {
        let ids = record["slices"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let of = |at: usize| {
            let word = |key: &str| record["claims"][at][key].as_str().map(str::to_owned);
            Some([word("gpu")?, word("claim")?])
        };
        Self(ids.enumerate().map(|(at, id)| HeldSlice { id: id.to_owned(), of: of(at) }).collect())
    }

    /// Writes them into a record.
    pub(crate) fn write(&self, record: &mut Value) {
        let of = |held: &HeldSlice| {
            held.of.as_ref().map_or(Value::Null, |[gpu, claim]| json!({"gpu": gpu, "claim": claim}))
        };
        record["slices"] = self.0.iter().map(|held| held.id.as_str()).collect();
        record["claims"] = self.0.iter().map(of).collect();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them is among the others.
    pub(crate) fn meet(&self, others: &Self) -> bool {
        self.0.iter().any(|own| others.0.iter().any(|other| own.id == other.id))
    }

    /// The names of the claims that it has the GPU of this name by. `None`: by none that is known.
    pub(crate) fn claims_of(&self, gpu: &str) -> Option<String> {
        let name = |held: &HeldSlice| {
            let [_, claim] = held.of.as_ref()?;
            Some(claim.split_once('/').map_or(claim.as_str(), |(_, name)| name).to_owned())
        };
        self.list_of(gpu, name)
    }

    /// The ids that the claims' status has of its shares of the GPU of this name. `None`: none is known.
    pub(crate) fn shares_of(&self, gpu: &str) -> Option<String> {
        // An id ends with the device and, of a device that several claims may have, the id of the share.
        let device = format!("-{}-", gpu.to_lowercase());
        self.list_of(gpu, |held| Some(held.id.split_once(&device)?.1.to_owned()))
    }

    /// What is known of each slice of this GPU, once each.
    fn list_of(&self, gpu: &str, known: impl Fn(&HeldSlice) -> Option<String>) -> Option<String> {
        let is_own = |held: &&HeldSlice| held.of.as_ref().is_some_and(|[of, _]| of == gpu);
        let mut all: Vec<String> = self.0.iter().filter(is_own).filter_map(known).collect();
        all.sort_unstable();
        all.dedup();
        (!all.is_empty()).then(|| all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: &str = "GPU-01010101-0101-0101-0101-010101010101";

    fn slices(words: &[(&str, &str)]) -> Slices {
        let words = words.iter();
        let words: Vec<String> = words
            .map(|(id, claim)| format!("id={id},gpu={GPU},mem=1073741824,cores=30,for={claim}"))
            .collect();
        Slices::of_words(&words)
    }

    #[test]
    fn a_record_keeps_the_claim_of_each_slice() {
        let two = slices(&[("a", "space/second"), ("b", "space/first"), ("c", "space/first")]);
        let mut record = json!({});
        two.write(&mut record);
        assert_eq!(record["slices"], json!(["a", "b", "c"]), "as earlier releases read them");
        assert_eq!(Slices::of_record(&record), two);
        assert_eq!(two.claims_of(GPU).as_deref(), Some("first,second"));
        assert_eq!(two.claims_of("GPU-02020202-0202-0202-0202-020202020202"), None);
    }

    #[test]
    fn a_share_is_named_as_in_the_status_of_its_claim() {
        let device = GPU.to_lowercase();
        let [one, other] =
            ["7f1c0000-0000-4000-8000-00000000000b", "7f1c0000-0000-4000-8000-00000000000a"];
        let [first, second] = [one, other].map(|share| format!("0ab5ab50-{device}-{share}"));
        let whole = format!("0ab5ab50-{device}");
        let both = slices(&[(&first, "space/name"), (&second, "space/name")]);
        assert_eq!(both.shares_of(GPU), Some(format!("{other},{one}")));
        assert_eq!(slices(&[(&whole, "space/name")]).shares_of(GPU), None);
        assert_eq!(slices(&[(&first, "space/name")]).shares_of("GPU-0"), None);
    }

    #[test]
    fn a_record_of_an_earlier_release_has_the_ids_alone() {
        let earlier = Slices::of_record(&json!({"slices": ["a", "b"]}));
        assert!(earlier.meet(&slices(&[("b", "space/name")])) && !earlier.is_empty());
        assert!(!earlier.meet(&slices(&[("c", "space/name")])));
        assert_eq!(earlier.claims_of(GPU), None);
        assert!(Slices::of_record(&json!({})).is_empty());
    }
}
