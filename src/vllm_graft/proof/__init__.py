"""Proofs on real executors: what a tree does when something fails, and under stress.

``faults`` and ``stress`` run inside an environment that has vLLM, usually started by
``vllm-graft run``, and write JSON; ``records`` compares two such results and needs
nothing. Base or grafted is decided by how the process is started.
"""
