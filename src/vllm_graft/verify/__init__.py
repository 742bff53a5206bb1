"""Base against grafted on the real engine: what runs, and what is made of it."""
