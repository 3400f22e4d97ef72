"""A traced log density as machine code: loops instead of tensor operations, and the sampler around them."""
