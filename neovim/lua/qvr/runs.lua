--- Runs: started, followed, cancelled. Progress itself comes as LSP progress (`LspProgress`, `vim.lsp.status()`).
local client = require("qvr.client")

local M = {}

--- @type table<string, table> run id -> { program, status, line }
M.known = {}
local order = {}

local ENDINGS = { finished = true, cancelled = true, failed = true, crashed = true }

--- `key=value` with numbers and booleans as such.
function M.options(words)
  local algorithm, program, options = "svi", nil, {}
  for _, word in ipairs(words) do
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

function M.run(words)
  local buffer = vim.api.nvim_get_current_buf()
  local algorithm, program, options = M.options(words)
  local argument = {
    uri = vim.uri_from_bufnr(buffer),
    algorithm = algorithm,
    program = program,
    options = next(options) and options or vim.empty_dict(),
  }
  client.execute(buffer, "qvr.run", argument, function(started)
    M.note(started.runId, { status = "running", program = program or "" })
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

local function number(value)
  return type(value) == "number" and ("%.4g"):format(value) or "–"
end

--- How a run ended, in one line.
function M.summary(event)
  if event.event == "finished" then
    if type(event.held_out) == "table" then
      return ("%s bits per byte held out"):format(number(event.held_out.bits_per_byte))
    end
    if type(event.accuracies) == "table" then
      local parts = {}
      for _, one in ipairs(event.accuracies.sites) do
        parts[#parts + 1] = ("%s %.1f %% right"):format(one.site, 100 * one.accuracy)
      end
      return table.concat(parts, ", ")
    end
    return event.losses and ("−ELBO %s"):format(number(event.losses.mean_of_last or event.losses.last)) or "finished"
  elseif event.event == "failed" then
    return event.message
  elseif event.event == "crashed" then
    return event.signal and ("ended by " .. event.signal) or "the worker ended"
  end
  return event.event
end

--- One `qvr/runEvent`.
function M.receive(params)
  local event = params.event
  M.note(params.runId, { program = params.program or "", event = event })
  if event.event == "started" or event.event == "progress" then
    M.note(params.runId, { status = "running" })
  elseif ENDINGS[event.event] then
    M.note(params.runId, { status = event.event })
    local good = event.event == "finished" or event.event == "cancelled"
    local text = ("qvr: %s %s. %s"):format(params.program or params.runId, event.event, M.summary(event))
    vim.notify(text, good and vim.log.levels.INFO or vim.log.levels.ERROR)
  end
  vim.api.nvim_exec_autocmds("User", { pattern = "QvrRunEvent", data = params })
end

function M.list()
  client.request(nil, "qvr/runs", { uri = vim.uri_from_bufnr(0) }, function(runs)
    if #runs == 0 then
      vim.notify("qvr: no runs in this folder")
      return
    end
    vim.ui.select(runs, {
      prompt = "Runs",
      format_item = function(run)
        return ("%s  %s  %s  %s"):format(run.runId, run.algorithm, run.status, number(run.lastLoss))
      end,
    }, function(run)
      if run then
        vim.cmd.edit(vim.fn.fnameescape(run.directory))
      end
    end)
  end)
end

return M
