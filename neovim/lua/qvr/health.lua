--- `:checkhealth qvr`
local M = {}

function M.check()
  local health = vim.health
  health.start("qvr")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  elseif vim.fn.has("nvim-0.10") == 1 then
    health.warn("Neovim " .. tostring(vim.version()) .. " works through vim.lsp.start; 0.11 is better tested")
  else
    health.error("Neovim 0.10 or newer is needed")
  end

  local command, why = require("qvr.client").command(vim.fs.root(0, { "qvr.toml", "pyproject.toml", ".git" }))
  health.info(("server: %s (from %s)"):format(table.concat(command, " "), why))
  local tried, result = pcall(function()
    return vim.system(vim.list_extend(vim.deepcopy(command), { "--version" }), { text = true, env = { PYTHONSAFEPATH = "1" } }):wait(20000)
  end)
  if tried and result.code == 0 then
    health.ok(vim.trim(result.stdout))
  else
    local reason = tried and vim.trim(result.stderr or "") or tostring(result)
    health.error("the server does not start: " .. reason, {
      "install it from a clone of the repository: python3 -m pip install /path/to/the/clone",
      "or name another interpreter: vim.g.qvr = { python = '/path/to/python' }",
    })
  end

  local clients = vim.lsp.get_clients({ name = "qvr" })
  if #clients > 0 then
    health.ok(("attached, %d client(s), root %s"):format(#clients, clients[1].root_dir or "none"))
  else
    health.info("no buffer is attached: open a .qvr file")
  end

  if vim.fn.executable("dot") == 1 then
    health.ok("dot draws SVG diagrams")
  else
    health.warn("'dot' is missing: :QvrDiagram needs it", { "install the package graphviz" })
  end
end

return M
