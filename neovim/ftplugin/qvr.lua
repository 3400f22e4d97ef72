if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = true

vim.bo.commentstring = "# %s"
vim.bo.comments = "b:#!,b:#"
vim.bo.expandtab = true
vim.bo.shiftwidth = 4
vim.bo.softtabstop = 4
vim.bo.iskeyword = "@,48-57,_"
vim.bo.suffixesadd = ".qvr"

vim.b.undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< iskeyword< suffixesadd<"

require("qvr.client").attach(vim.api.nvim_get_current_buf())
