"""The stored answer compared with a fresh one."""
