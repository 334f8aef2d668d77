"""Batches divided into shards, which processes share: data parallelism on one machine."""
