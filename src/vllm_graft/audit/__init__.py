"""Finds code that a series breaks, by reading it.

A series brings rules (:mod:`~vllm_graft.audit.rules`), each of one of the generic
kinds below :mod:`~vllm_graft.audit.kinds`. :mod:`~vllm_graft.audit.project` resolves
names, classes and types across the audited folders and the vLLM that they build on;
nothing is imported or executed. :mod:`~vllm_graft.audit.auditor` puts it together.
"""
