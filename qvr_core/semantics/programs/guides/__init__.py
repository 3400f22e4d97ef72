"""Guides: programs that draw the latents of another one."""
