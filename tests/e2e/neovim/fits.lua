-- Fits in a real Neovim: the window with the progress, results in a buffer, completion; run by tests/e2e/test_neovim.py.
-- Arguments: the folder of the plugin, the interpreter, a working folder with schools.qvr, d.csv and qvr.toml.
local plugin, python, folder = arg[1], arg[2], arg[3]
local walk = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), "walk.lua"))
local step, eventually = walk.step, walk.eventually

vim.opt.runtimepath:prepend(plugin)
vim.g.qvr = { python = python }
vim.o.columns, vim.o.lines = 120, 40
vim.cmd("runtime! ftdetect/qvr.lua plugin/qvr.lua")
vim.cmd("filetype plugin on")
vim.cmd.edit(folder .. "/schools.qvr")

local function float_lines()
  local window = require("qvr.float").window()
  if window and vim.api.nvim_win_is_valid(window) then
    return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), window
  end
end

local function page()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

step("data= is completed by sources, then by files that such a source reads", function()
  walk.attached()
  local sources = vim.fn.getcompletion("QvrRun nuts data=", "cmdline")
  assert(vim.tbl_contains(sources, "data=synthetic") and vim.tbl_contains(sources, "data=csv:"), vim.inspect(sources))
  local files = vim.fn.getcompletion("QvrRun nuts data=csv:", "cmdline")
  assert(vim.tbl_contains(files, "data=csv:d.csv") and vim.tbl_contains(files, "data=csv:more/"), vim.inspect(files))
  assert(not table.concat(files):find("notes.txt", 1, true), vim.inspect(files))
  local inside = vim.fn.getcompletion("QvrRun nuts data=csv:more/", "cmdline")
  assert(vim.deep_equal(inside, { "data=csv:more/e.csv" }), vim.inspect(inside))
  assert(vim.deep_equal(vim.fn.getcompletion("QvrRun program=", "cmdline"), { "program=schools" }))
end)

step("a window shows how far the chains are, and how long they will take", function()
  vim.cmd("QvrRun nuts")
  local lines = eventually("progress", function()
    local found = float_lines()
    return found and found[2] and found[2]:find("█.*left") and found
  end, 120)
  assert(lines[1]:find("schools · NUTS", 1, true), vim.inspect(lines))
  assert(lines[2]:find("/400", 1, true), vim.inspect(lines))
  assert(lines[3]:find("acceptance", 1, true) and lines[3]:find("divergences", 1, true), vim.inspect(lines))
  local _, window = float_lines()
  local place = vim.api.nvim_win_get_config(window)
  assert(place.relative == "editor" and place.anchor == "SE" and not place.focusable, vim.inspect(place))
  assert(vim.api.nvim_get_current_win() ~= window)
end)

step("chains that diverge are not said to be well", function()
  local told = eventually("the end", function()
    return walk.told("schools finished.")
  end, 240)
  assert(told:find("not to be trusted", 1, true), told)
  local lines = assert(float_lines())
  assert(lines[1]:find("schools · NUTS · finished", 1, true) and lines[2]:find("not to be trusted", 1, true), vim.inspect(lines))
  eventually("the window goes away", function()
    return not float_lines()
  end)
end)

step(":QvrRuns opens the results of a run: what to do, and the posterior", function()
  local offered
  vim.ui.select = function(items, options, choose)
    offered = vim.tbl_map(options.format_item, items)
    choose(items[1])
  end
  vim.cmd("QvrRuns")
  eventually("results", function()
    return vim.api.nvim_buf_get_name(0):find("qvr://run/", 1, true)
  end)
  assert(#offered == 1 and offered[1]:find("not to be trusted", 1, true), vim.inspect(offered))
  local text = page()
  assert(text:find("^schools · NUTS · finished · not to be trusted"), text)
  assert(text:find("✗ divergences: ", 1, true), text)
  for _, name in ipairs({ "mu", "tau", "theta[0]", "theta[7]" }) do
    local row = text:match("\n" .. vim.pesc(name) .. "%s[^\n]*")
    assert(row and row:find("[▁▂▃▄▅▆▇█]"), "no row of " .. name .. "\n" .. text)
  end
  assert(text:find("R%-hat%s+ESS  density"), text)
  assert(not vim.bo.modifiable)
end)

step("<CR> goes to the step", function()
  vim.fn.search("^tau ", "w")
  vim.api.nvim_feedkeys(vim.keycode("<CR>"), "xt", false)
  assert(vim.fs.basename(vim.api.nvim_buf_get_name(0)) == "schools.qvr", vim.api.nvim_buf_get_name(0))
  assert(vim.api.nvim_get_current_line():find("sample tau", 1, true), vim.api.nvim_get_current_line())
end)

step("the window of a fit shows its loss, and results of a second run are read anew at its end", function()
  vim.cmd("QvrRun svi steps=100000")
  local lines = eventually("a loss", function()
    local found = float_lines()
    return found and found[3] and found[3]:find("−ELBO", 1, true) and found[3]:find("[▁▂▃▄▅▆▇█]") and found
  end, 120)
  assert(lines[2]:find("/100000", 1, true), vim.inspect(lines))
  vim.cmd("QvrRuns last")
  eventually("results", function()
    return page():find("^schools · SVI · running")
  end)
  vim.cmd("QvrCancel")
  eventually("the end", function()
    return page():find("^schools · SVI · cancelled")
  end, 60)
  vim.cmd("bdelete")
end)

step("a lens over the program runs it", function()
  vim.cmd.edit(folder .. "/schools.qvr")
  local lenses = vim.lsp.buf_request_sync(0, "textDocument/codeLens", { textDocument = vim.lsp.util.make_text_document_params(0) }, 10000)
  local chosen
  for _, answer in pairs(lenses or {}) do
    for _, lens in ipairs(answer.result) do
      chosen = lens.command.title:find("NUTS", 1, true) and lens.command or chosen
    end
  end
  local before = #require("qvr.runs").going()
  vim.lsp.commands[chosen.command](chosen, { bufnr = 0 })
  eventually("another run", function()
    return #require("qvr.runs").going() > before
  end, 60)
  vim.cmd("QvrCancel")
  eventually("cancelled", function()
    return #require("qvr.runs").going() == 0
  end, 60)
end)

step("the interpreter of a folder is run only after the user has said yes", function()
  local venv = vim.fs.joinpath(folder, "theirs", ".venv")
  vim.fn.mkdir(venv .. "/bin", "p")
  vim.fn.writefile({ "home = /usr/bin" }, venv .. "/pyvenv.cfg")
  for _, name in ipairs({ "python", "qvr-lsp" }) do
    vim.fn.writefile({ "#!/bin/sh", "touch " .. folder .. "/was-run", "exit 1" }, venv .. "/bin/" .. name)
    vim.uv.fs_chmod(venv .. "/bin/" .. name, 493)
  end
  vim.g.qvr = {}
  vim.env.VIRTUAL_ENV, vim.env.PATH = nil, "/usr/bin:/bin"
  local client = require("qvr.client")
  local asked = 0
  vim.fn.confirm = function(question)
    asked = asked + 1
    assert(question:find("pyvenv.cfg", 1, true), question)
    return 1 -- ignore
  end
  local root = vim.fs.dirname(venv)
  for _ = 1, 2 do
    assert(client.command(root)[1] == "python3", vim.inspect(client.command(root)))
  end
  assert(asked == 1, "asked " .. asked .. " times")
  assert(vim.secure.trust({ action = "allow", path = venv .. "/pyvenv.cfg" }))
  client.restart()
  assert(client.command(root)[1] == vim.fs.joinpath(venv, "bin", "python"), vim.inspect(client.command(root)))
  assert(asked == 1, "asked " .. asked .. " times")
  vim.fn.writefile({ "home = /usr/local/bin" }, venv .. "/pyvenv.cfg") -- another environment: asked again
  client.restart()
  assert(client.command(root)[1] == "python3" and asked == 2, "asked " .. asked .. " times")
  assert(not vim.uv.fs_stat(folder .. "/was-run"), "it was run")
end)

step("the help says how inlays, lenses and results are had", function()
  vim.cmd("helptags " .. vim.fn.fnameescape(plugin .. "/doc"))
  for _, tag in ipairs({ ":QvrRuns", "qvr-results", "qvr-inlays", "qvr-progress" }) do
    assert(#vim.fn.getcompletion(tag, "help") > 0, "no tag " .. tag)
  end
end)

vim.cmd("qall!")
