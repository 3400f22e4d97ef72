--- The language server: which command starts it, and how buffers attach.
local M = {}

local MARKERS = { "qvr.toml", "pyproject.toml", ".git" }

--- The user's settings: `vim.g.qvr = { cmd = {…}, python = "…", progress = true, settings = {…} }`.
function M.options()
  return vim.g.qvr or {}
end

local function has_server(venv)
  return vim.fn.executable(vim.fs.joinpath(venv, "bin", "qvr-lsp")) == 1
    and vim.fn.executable(vim.fs.joinpath(venv, "bin", "python")) == 1
end

local answers = {}

--- Whether the user trusts the environment of a folder: its programs came with files that were only opened. Asked once
--- a folder; |vim.secure| remembers the answer, and asks again when the environment is another one.
local function trusted(venv)
  if answers[venv] == nil then
    answers[venv] = vim.secure.read(vim.fs.joinpath(venv, "pyvenv.cfg")) ~= nil
  end
  return answers[venv]
end

--- The command that starts the server, and where it comes from in words.
--- @param root string?
--- @return string[] cmd, string why
function M.command(root)
  local options = M.options()
  if options.cmd then
    return options.cmd, "vim.g.qvr.cmd"
  end
  if options.python then
    return { vim.fn.expand(options.python), "-m", "qvr_lsp.server" }, "vim.g.qvr.python"
  end
  local active = vim.env.VIRTUAL_ENV
  if active and has_server(active) then
    return { vim.fs.joinpath(active, "bin", "python"), "-m", "qvr_lsp.server" }, "VIRTUAL_ENV"
  end
  if vim.fn.executable("qvr-lsp") == 1 then
    return { "qvr-lsp" }, "PATH"
  end
  local folder = root or vim.fn.getcwd()
  local venv = vim.fs.joinpath(folder, ".venv")
  if has_server(venv) and trusted(venv) then
    return { vim.fs.joinpath(venv, "bin", "python"), "-m", "qvr_lsp.server" }, ".venv of " .. folder
  end
  return { "python3", "-m", "qvr_lsp.server" }, "PATH"
end

local function handlers()
  return {
    ["qvr/runEvent"] = function(_, params)
      require("qvr.runs").receive(params)
    end,
    ["qvr/live"] = function(_, params)
      require("qvr.live").receive(params)
    end,
  }
end

local function settings()
  return { qvr = M.options().settings or vim.empty_dict() }
end

--- For `vim.lsp.config` (0.11). The command is found when a buffer attaches, in the buffer's root.
function M.config()
  return {
    cmd = function(dispatchers, config)
      local command = M.command(config and config.root_dir)
      return vim.lsp.rpc.start(command, dispatchers, { env = { PYTHONSAFEPATH = "1" } })
    end,
    filetypes = { "qvr" },
    root_markers = MARKERS,
    handlers = handlers(),
    settings = settings(),
    init_options = M.options().settings or vim.empty_dict(),
  }
end

--- Attach a buffer on 0.10, where `vim.lsp.enable` does not exist.
--- @param buffer integer
function M.attach(buffer)
  if vim.lsp.enable then
    return
  end
  local root = vim.fs.root(buffer, MARKERS) or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  vim.lsp.start({
    name = "qvr",
    cmd = (M.command(root)),
    cmd_env = { PYTHONSAFEPATH = "1" },
    root_dir = root,
    handlers = handlers(),
    settings = settings(),
    init_options = M.options().settings or vim.empty_dict(),
  }, { bufnr = buffer })
end

--- The client of a buffer, or of any buffer; tells the user where there is none.
--- @param buffer integer?
function M.of(buffer)
  local client = vim.lsp.get_clients({ name = "qvr", bufnr = buffer })[1] or vim.lsp.get_clients({ name = "qvr" })[1]
  if not client then
    vim.notify("qvr: the language server is not running; see :checkhealth qvr", vim.log.levels.ERROR)
  end
  return client
end

--- Send a request; `take(result)` gets the answer, an error is told.
function M.request(buffer, method, params, take)
  local client = M.of(buffer)
  if not client then
    return
  end
  local function done(err, result)
    if err then
      vim.notify("qvr: " .. (err.message or vim.inspect(err)), vim.log.levels.ERROR)
    elseif take then
      take(result)
    end
  end
  if vim.fn.has("nvim-0.11") == 1 then
    client:request(method, params, done, buffer)
  else
    client.request(method, params, done, buffer)
  end
end

--- A command of the server with its one argument.
function M.execute(buffer, command, argument, take)
  M.request(buffer, "workspace/executeCommand", { command = command, arguments = { argument } }, take)
end

--- Stop the server and start it again, with what is trusted by now.
function M.restart()
  local buffers = {}
  answers = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = "qvr" })) do
    vim.list_extend(buffers, vim.tbl_keys(client.attached_buffers))
    client:stop()
  end
  vim.defer_fn(function()
    for _, buffer in ipairs(buffers) do
      if vim.api.nvim_buf_is_valid(buffer) then
        vim.api.nvim_exec_autocmds("FileType", { buffer = buffer })
        M.attach(buffer)
      end
    end
  end, 500)
end

return M
