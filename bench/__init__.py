"""Ratios measured side by side in one run; docs/performance.md says what they mean and what was seen."""
