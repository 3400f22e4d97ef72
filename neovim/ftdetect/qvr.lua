vim.filetype.add({ extension = { qvr = "qvr" } })
