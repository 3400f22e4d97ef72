"""Programs made of files: what `import` brings into a file."""
