"""Recurrent loops as calls on pooled buffers: forward steps, their adjoint, the fused Gaussian cells."""
