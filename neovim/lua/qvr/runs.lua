--- Runs: started, followed, cancelled, opened. Progress comes as LSP progress too (`LspProgress`, `vim.lsp.status()`).
local client = require("qvr.client")
local words = require("qvr.words")

local M = {}

--- @type table<string, table> run id -> { program, status, line }
M.known = {}
local order = {}

local ENDINGS = { finished = true, cancelled = true, failed = true, crashed = true }

--- `key=value` with numbers and booleans as such.
function M.options(given)
  local algorithm, program, options = "svi", nil, {}
  for _, word in ipairs(given) do
    local key, value = word:match("^([%w_]+)=(.*)$")
    if not key then
      algorithm = word
    elseif key == "program" then
      program = value
    elseif value == "true" or value == "false" then
      options[key] = value == "true"
    else
      options[key] = tonumber(value) or value
    end
  end
  return algorithm, program, options
end

function M.run(given)
  local algorithm, program, options = M.options(given)
  M.start({
    uri = vim.uri_from_bufnr(0),
    algorithm = algorithm,
    program = program,
    options = next(options) and options or vim.empty_dict(),
  })
end

--- Start a run: the argument of `qvr.run`.
function M.start(argument)
  client.execute(vim.uri_to_bufnr(argument.uri), "qvr.run", argument, function(started)
    M.note(started.runId, { status = "running", program = argument.program or "" })
    vim.notify("qvr: run " .. started.runId)
  end)
end

function M.note(id, more)
  if not M.known[id] then
    M.known[id] = {}
    table.insert(order, id)
  end
  M.known[id] = vim.tbl_extend("force", M.known[id], more)
end

--- Ids of the runs that go on, newest first.
function M.going()
  local found = {}
  for index = #order, 1, -1 do
    local id = order[index]
    if not ENDINGS[M.known[id].status] then
      table.insert(found, id)
    end
  end
  return found
end

function M.cancel(id)
  id = id or M.going()[1]
  if not id then
    vim.notify("qvr: nothing is running")
    return
  end
  client.execute(nil, "qvr.cancelRun", { runId = id })
end

function M.resume(id, more)
  local asked = { runId = id, uri = vim.uri_from_bufnr(0), more = more }
  client.execute(nil, "qvr.restartWorker", asked, function(started)
    M.note(started.runId, { status = "running" })
  end)
end

--- One `qvr/runEvent`.
function M.receive(params)
  local event = params.event
  M.note(params.runId, { program = params.program or "", event = event })
  if event.event == "started" or event.event == "progress" then
    M.note(params.runId, { status = "running" })
  elseif ENDINGS[event.event] then
    M.note(params.runId, { status = event.event })
    local bad = event.event == "failed" or event.event == "crashed"
    local level = bad and "ERROR" or #words.grave(event) > 0 and "WARN" or "INFO"
    vim.notify(("qvr: %s %s. %s"):format(params.program or params.runId, event.event, words.ending(event)), vim.log.levels[level])
  end
  require("qvr.float").receive(params)
  vim.api.nvim_exec_autocmds("User", { pattern = "QvrRunEvent", data = params })
end

local function line(run)
  local ending = type(run.ending) == "table" and run.ending or {}
  local how = ending.event and words.ending(ending) or ""
  return ("%s  %s  %s  %s%s"):format(run.runId, run.program, run.algorithm, run.status, how ~= "" and how ~= run.status and ": " .. how or "")
end

--- Open the results of a run: of one whose id begins so, of the newest (`last`), or of one that is chosen.
function M.list(wanted)
  client.request(nil, "qvr/runs", { uri = M.place() }, function(runs)
    local found = vim.tbl_filter(function(run)
      return not wanted or wanted == "last" or vim.startswith(run.runId, wanted)
    end, runs)
    if #found == 0 then
      vim.notify(wanted and ("qvr: no run of this folder begins with " .. wanted) or "qvr: no runs in this folder")
    elseif wanted then
      require("qvr.results").open(found[1])
    else
      vim.ui.select(found, { prompt = "Runs", kind = "qvr-run", format_item = line }, function(run)
        if run then
          require("qvr.results").open(run)
        end
      end)
    end
  end)
end

--- The file whose folder's runs are meant: the buffer's, or in another buffer any program's.
function M.place()
  local attached = vim.lsp.get_clients({ name = "qvr", bufnr = 0 })[1]
  local any = attached or vim.lsp.get_clients({ name = "qvr" })[1]
  local buffer = attached and 0 or any and next(any.attached_buffers) or 0
  return vim.uri_from_bufnr(buffer)
end

return M
