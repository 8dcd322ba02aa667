//! The labels of a sample: which budget it is of, and which of its GPUs.
//!
//! A container goes by the names of its pod, its id, and the claim and its share by which it has the GPU; any other budget
//! by its file.

use crate::command::status::view::LedgerView;

/// Names and values, in the order in which they are rendered.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The budget's owner, and one of its GPUs.
pub(super) fn labels(ledger: &LedgerView, gpu: String) -> Labels {
    let mut labels = vec![("kind", ledger.kind().to_owned())];
    let Some(container) = &ledger.container else {
        labels.push(("ledger", ledger.path.display().to_string()));
        labels.push(("gpu", gpu));
        return labels;
    };
    if let Some(names) = &container.record.names {
        labels.push(("namespace", names.namespace.clone()));
        labels.push(("pod", names.pod.clone()));
        labels.push(("container", names.container.clone()));
    }
    labels.push(("id", container.record.container.clone()));
    labels.extend(container.record.slices.claims_of(&gpu).map(|claims| ("claim", claims)));
    labels.extend(container.record.slices.shares_of(&gpu).map(|shares| ("share", shares)));
    labels.push(("gpu", gpu));
    labels
}

#[cfg(test)]
mod tests {
    use crate::command::status::metrics::render;
    use crate::command::status::text::tests::raised;
    use crate::container::slices::Slices;

    #[test]
    fn a_gpu_of_a_claim_is_labelled_by_it() {
        let mut claimed = raised();
        let gpu = claimed.ledgers[0].devices[0].name();
        let (share, device) = ("7f1c0000-0000-4000-8000-000000000001", gpu.to_lowercase());
        let slice = format!("id=a-{device}-{share},gpu={gpu},mem=1,cores=30,for=default/train-gpu");
        let record = claimed.ledgers[0].container.as_mut().map(|container| &mut container.record);
        record.expect("a container").slices = Slices::of_words(&[slice]);
        let text = render(&claimed);
        let label = format!(",claim=\"train-gpu\",share=\"{share}\",gpu=\"{gpu}\"");
        let labelled = |name: &str| {
            let of = |line: &&str| line.starts_with(&format!("gpucap_{name}{{kind=\"container\""));
            let lines: Vec<&str> = text.lines().filter(of).collect();
            !lines.is_empty() && lines.iter().all(|line| line.contains(&label))
        };
        assert!(labelled("memory_limit_bytes") && labelled("memory_held_bytes"), "{text}");
        assert!(!render(&raised()).contains("claim="));
    }
}
