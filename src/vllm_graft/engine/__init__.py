"""The semantic patch engine: reads, matches and splices. Pure: no tree, no process."""
