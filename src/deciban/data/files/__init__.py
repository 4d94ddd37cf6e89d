"""Files as rows: csv, JSON lines, parquet, mailboxes."""
