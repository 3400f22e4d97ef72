if vim.g.loaded_qvr then
  return
end
vim.g.loaded_qvr = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("qvr: Neovim 0.10 or newer is needed", vim.log.levels.ERROR)
  return
end

if vim.fn.has("nvim-0.11") == 1 then
  vim.lsp.enable("qvr")
end

local command = vim.api.nvim_create_user_command

command("QvrRun", function(given)
  require("qvr.runs").run(given.fargs)
end, {
  nargs = "*",
  desc = "Fit the program: :QvrRun [svi|nuts] [program=NAME] [key=value …]",
  complete = function(lead)
    return require("qvr.complete").run(lead)
  end,
})

command("QvrCancel", function(given)
  require("qvr.runs").cancel(given.args ~= "" and given.args or nil)
end, {
  nargs = "?",
  desc = "Cancel a run, the newest without an id; its checkpoint is kept",
  complete = function()
    return require("qvr.runs").going()
  end,
})

command("QvrResume", function(given)
  require("qvr.runs").resume(given.fargs[1], tonumber(given.fargs[2]))
end, { nargs = "+", desc = "Go on with a run from its last checkpoint, chains with so many more draws" })

command("QvrRuns", function(given)
  require("qvr.runs").list(given.args ~= "" and given.args or nil)
end, {
  nargs = "?",
  desc = "Open the results of a run: of the one named, of the `last`, or of one chosen from the runs of this folder",
  complete = function(lead)
    return vim.tbl_filter(function(id)
      return vim.startswith(id, lead)
    end, vim.list_extend({ "last" }, vim.tbl_keys(require("qvr.runs").known)))
  end,
})

command("QvrDiagram", function(given)
  require("qvr.diagram").open({ name = given.args ~= "" and given.args or nil, file = given.bang })
end, {
  nargs = "?",
  bang = true,
  desc = "Show the diagram in the browser, following the cursor; with ! write it as SVG",
})

command("QvrLive", function(given)
  require("qvr.live").set(given.args)
end, {
  nargs = 1,
  desc = "Draw from the program while it is written: off, prior or posterior",
  complete = function(lead)
    return require("qvr.live").kinds(lead)
  end,
})

vim.api.nvim_create_autocmd({ "CursorHold", "CursorHoldI" }, {
  group = vim.api.nvim_create_augroup("qvr_live", { clear = true }),
  pattern = "*.qvr",
  callback = function(event)
    require("qvr.live").look(event.buf)
  end,
})

-- what the lenses over a program do
vim.lsp.commands["qvr.run"] = function(lens)
  require("qvr.runs").start(lens.arguments[1])
end
vim.lsp.commands["qvr.runs"] = function()
  require("qvr.runs").list()
end
vim.lsp.commands["qvr.diagram"] = function(lens)
  require("qvr.diagram").open({ name = lens.arguments[1].name })
end

command("QvrRestart", function()
  require("qvr.client").restart()
end, { desc = "Restart the language server" })
