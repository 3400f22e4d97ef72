"""Stan: one number at a time, in loops over the program's indices.

`shapes` says how large each value is, `elements` prints one element of it, `densities` the families, `hidden` what is
summed out; `steps` walks a program and `program` puts the blocks together.  `tables` has Stan's names.
"""
