"""Reads what `gpucap metrics` prints by the rules of OpenMetrics; prints the types, and what is told of the ledger."""
import subprocess
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

gpucap, ledger = sys.argv[1:]
text = subprocess.run([gpucap, "metrics"], stdout=subprocess.PIPE, text=True, check=True).stdout
for family in text_string_to_metric_families(text):
    print(f"type {family.name}={family.type} {family.unit}")
    for sample in family.samples:
        if sample.labels.get("ledger") == ledger:
            print(f"{sample.name}={sample.value:.0f}")
