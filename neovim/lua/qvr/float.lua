--- A small window in the corner with what runs: how far it is, its loss or acceptance, how long it will take.
local words = require("qvr.words")

local M = {}

local WIDTH, CELLS, LOSSES, STAYS_MS = 46, 24, 400, 6000
local ENDINGS = { finished = true, cancelled = true, failed = true, crashed = true }

--- @type table<string, { title: string, lines: string[], losses: number[], over: boolean, bad: boolean }>
local shown = {}
local order = {}
local buffer, window

local function enabled()
  return require("qvr.client").options().progress ~= false
end

--- What a progress event says, in two lines.
local function progress(run, event)
  local left = event.eta and (" · %s left"):format(words.duration(event.eta)) or ""
  local share = event.steps > 0 and event.step / event.steps or 0
  local first = ("%s %d/%d%s"):format(words.bar(share, 12), event.step, event.steps, left)
  local loss = event.smoothed_loss or event.loss
  if type(loss) == "number" then
    run.losses[#run.losses + 1] = loss
    if #run.losses > LOSSES then
      table.remove(run.losses, 1)
    end
    return { first, ("−ELBO %s %s"):format(words.number(loss), words.sparkline(run.losses, CELLS)) }
  end
  local parts = {}
  if event.acceptance then
    parts[#parts + 1] = ("acceptance %.2f"):format(event.acceptance)
  end
  parts[#parts + 1] = ("%d divergences"):format(event.divergences or 0)
  return { first, table.concat(parts, " · ") }
end

local function cut(text)
  return vim.fn.strcharpart(text:gsub("%s+", " "), 0, WIDTH - 2)
end

local function lines()
  local found, marks = {}, {}
  for _, id in ipairs(order) do
    local run = shown[id]
    marks[#marks + 1] = { #found, run.bad and "DiagnosticWarn" or "Title" }
    found[#found + 1] = " " .. cut(run.title)
    for _, line in ipairs(run.lines) do
      found[#found + 1] = " " .. cut(line)
    end
  end
  return found, marks
end

local function draw()
  local text, marks = lines()
  if #text == 0 or not enabled() then
    if window and vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
    window = nil
    return
  end
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.bo[buffer].bufhidden = "hide"
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, text)
  local space = vim.api.nvim_create_namespace("qvr_float")
  vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  for _, mark in ipairs(marks) do
    vim.api.nvim_buf_set_extmark(buffer, space, mark[1], 0, { line_hl_group = mark[2] })
  end
  local place = {
    relative = "editor",
    anchor = "SE",
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = math.min(WIDTH, vim.o.columns - 2),
    height = math.min(#text, math.max(1, vim.o.lines - 4)),
  }
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_set_config(window, place)
    return
  end
  local more = { style = "minimal", border = "rounded", focusable = false, noautocmd = true, zindex = 40 }
  window = vim.api.nvim_open_win(buffer, false, vim.tbl_extend("error", place, more))
end

--- Take a run off the window.
function M.close(id)
  shown[id] = nil
  order = vim.tbl_filter(function(one)
    return one ~= id
  end, order)
  draw()
end

--- The window while it is open.
function M.window()
  return window
end

--- One `qvr/runEvent`.
function M.receive(params)
  local id, event = params.runId, params.event
  if not shown[id] then
    if ENDINGS[event.event] and event.event ~= "failed" then
      return
    end
    shown[id] = { title = "", lines = {}, losses = {}, over = false, bad = false }
    order[#order + 1] = id
  end
  local run = shown[id]
  if event.event == "started" then
    run.over = false
    run.name = ("%s · %s"):format(event.program, event.algorithm:upper())
    run.title, run.lines = run.name, { event.data }
  elseif event.event == "progress" then
    run.title = run.name and (event.phase and ("%s · %s"):format(run.name, event.phase) or run.name) or id
    run.lines = progress(run, event)
  elseif ENDINGS[event.event] then
    run.over = true
    run.bad = event.event == "failed" or event.event == "crashed" or #words.grave(event) > 0
    run.title = ("%s · %s"):format(run.name or params.program or id, event.event)
    run.lines = { words.ending(event) }
    vim.defer_fn(function()
      if shown[id] == run and run.over then
        M.close(id)
      end
    end, STAYS_MS)
  else
    return
  end
  draw()
end

return M
