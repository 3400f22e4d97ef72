hdf5_version: str
