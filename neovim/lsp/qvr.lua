-- Read by Neovim 0.11 and later: `vim.lsp.enable("qvr")` (plugin/qvr.lua does it).
return require("qvr.client").config()
