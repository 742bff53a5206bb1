"""Where every patch stands on every release of vLLM."""
