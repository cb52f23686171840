"""The four ways to PostgreSQL and Valkey, and which of them this machine and environment get."""
