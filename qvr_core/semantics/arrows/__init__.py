"""Morphisms, objects and arrow expressions."""
