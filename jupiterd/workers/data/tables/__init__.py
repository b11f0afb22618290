"""Rows of tables: JSON, CSV, Parquet and data sets of Hugging Face."""
