"""SQL: queries and transactions, values for placeholders, and the rows that come back."""
