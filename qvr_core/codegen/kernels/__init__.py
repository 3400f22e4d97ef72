"""What is compiled as it stands, in the subset of Python that `codegen.subset` reads."""
