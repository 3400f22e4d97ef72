"""Recurrent loops as calls on pooled buffers, with a generated backward; chains of Normal kernels."""
