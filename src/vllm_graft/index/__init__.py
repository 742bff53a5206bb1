"""Releases of vLLM from the user's package index, cached and verified."""
