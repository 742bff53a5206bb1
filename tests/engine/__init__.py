"""What runs real vLLM: drivers, workloads, tiny models and ordering errors."""
