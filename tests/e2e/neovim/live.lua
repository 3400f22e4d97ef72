-- The posterior while a program is written, in a real Neovim; run by tests/e2e/test_neovim.py.
-- Arguments: the folder of the plugin, the interpreter, a working folder with schools.qvr, d.csv and qvr.toml.
local plugin, python, folder = arg[1], arg[2], arg[3]
local walk = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), "walk.lua"))
local step, eventually = walk.step, walk.eventually

vim.opt.runtimepath:prepend(plugin)
vim.g.qvr = { python = python, settings = { live = "posterior" } }
vim.cmd("runtime! ftdetect/qvr.lua plugin/qvr.lua")
vim.cmd("filetype plugin on")
vim.cmd.edit(folder .. "/schools.qvr")

--- The figures behind a step, as Neovim holds them.
local function figures(name)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    if line:find(name, 1, true) then
      for _, hint in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
        local label = hint.inlay_hint.label
        if hint.inlay_hint.position.line == row - 1 and type(label) == "string" and label:find("±", 1, true) then
          return label
        end
      end
    end
  end
end

local function live(name)
  local label = figures(name)
  return label and label:find("^live ") and label
end

--- Processes that draw for this Neovim.
local function processes()
  local client = vim.lsp.get_clients({ name = "qvr" })[1]
  local found = vim.system({ "ps", "-eo", "pid,ppid,args" }, { text = true }):wait().stdout
  local count = 0
  for line in found:gmatch("[^\n]+") do
    if line:find("qvr_core.runs.worker.live", 1, true) and vim.b.qvr_pid and line:find("^%s*%d+%s+" .. vim.b.qvr_pid .. "%s") then
      count = count + 1
    end
  end
  return client and count or 0
end

step("the posterior stands behind the steps, and a line says how it stands", function()
  local client = walk.attached()
  client:request("qvr/status", vim.empty_dict(), function(_, status)
    vim.b.qvr_pid = tostring(status.pid)
  end, 0)
  vim.lsp.inlay_hint.enable(true)
  eventually("figures", function()
    return live("sample mu")
  end, 60)
  eventually("the line", function()
    return (vim.b.qvr_live or ""):find("live posterior of `schools`: 4 chains of", 1, true)
  end)
  eventually("one process", function()
    return processes() == 1
  end)
end)

step("an edit makes them those of before, and brings new ones", function()
  local heard = 0
  vim.api.nvim_create_autocmd("User", {
    pattern = "QvrLive",
    callback = function(event)
      heard = heard + (event.data.state == "drawn" and 1 or 0)
    end,
  })
  vim.fn.search("Normal(0.0, 5.0)")
  vim.cmd("substitute/Normal(0.0, 5.0)/Normal(100.0, 0.1)/")
  eventually("figures of before", function()
    local label = figures("sample mu")
    return label and label:find("^before ")
  end)
  eventually("new figures", function()
    local label = live("sample mu")
    return label and (label:find("100%.") or label:find("99%.")) and label
  end, 60)
  assert(heard > 0)
end)

step("what cannot be drawn is said in the line, and in no message", function()
  vim.cmd("substitute/Normal(100.0, 0.1)/Normal(100.0, nothing(1.0))/")
  eventually("the reason", function()
    return (vim.b.qvr_live or ""):find("once the errors are mended", 1, true)
  end)
  assert(#walk.messages == 0, vim.inspect(walk.messages))
end)

step("with it off nothing is shown and no process is left", function()
  assert(vim.deep_equal(vim.fn.getcompletion("QvrLive p", "cmdline"), { "prior", "posterior" }))
  vim.cmd("QvrLive off")
  eventually("no figures", function()
    return not figures("sample mu")
  end)
  eventually("no process", function()
    return processes() == 0
  end)
end)
vim.cmd("qall!")
