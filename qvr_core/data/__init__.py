"""Data for programs: text corpora, tables, arrays and synthetic draws as tensors for inputs, data names and sites."""
