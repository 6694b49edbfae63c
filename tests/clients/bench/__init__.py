"""Runs policyd with real coding-agent clients and a scripted model on the loopback interface."""
