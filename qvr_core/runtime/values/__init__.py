"""Values as tensors: layout, rows, indices, padding, precision, errors; the contract of every arrow."""
