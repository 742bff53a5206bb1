"""The measurements behind the figures in the README.

``python -m benchmarks`` runs them all and prints Markdown; name some to run only
those. Each module is one benchmark, and says in its docstring what it measures.
"""
