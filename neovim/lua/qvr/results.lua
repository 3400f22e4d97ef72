--- What a run leaves, in a buffer: how it ended, what to do about it, and its posterior number by number.
local words = require("qvr.words")

local M = {}

local MOST_BYTES = 8000000
local SPACE = vim.api.nvim_create_namespace("qvr_results")

local function read_json(path)
  local state = vim.uv.fs_stat(path)
  if not state or state.size > MOST_BYTES then
    return nil
  end
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  local good, value = pcall(vim.json.decode, text or "", { luanil = { object = true, array = true } })
  return good and type(value) == "table" and value or nil
end

local Page = {}
Page.__index = Page

function Page:add(text, group)
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    self.lines[#self.lines + 1] = line
    if group then
      self.marks[#self.marks + 1] = { #self.lines - 1, group }
    end
  end
end

function Page:ending(ending)
  for _, check in ipairs(ending.checks or {}) do
    local sign = check.passed and "✓" or check.note and "•" or "✗"
    local group = check.grave and "DiagnosticWarn" or not check.passed and "DiagnosticInfo" or "Comment"
    self:add(("%s %s: %s"):format(sign, check.name, check.text), group)
    if not check.passed and check.advice then
      self:add("    " .. check.advice)
    end
  end
  if ending.held_out then
    local held = ending.held_out
    self:add(("held out: %s bits per byte (bound %s, unigram %s, bigram %s)"):format(words.number(held.bits_per_byte), words.number(held.bound), words.number(held.unigram), words.number(held.bigram)))
  end
  if ending.losses then
    self:add(("−ELBO: first %s, last %s, best %s"):format(words.number(ending.losses.first), words.number(ending.losses.last), words.number(ending.losses.best)))
  end
  if ending.event == "failed" then
    self:add(ending.message, "DiagnosticError")
    for _, fix in ipairs(ending.fixes or {}) do
      self:add("    " .. fix)
    end
  end
  for _, line in ipairs(ending.log or {}) do
    self:add("    " .. line, "Comment")
  end
end

--- A cell of so many columns on the screen, with its text at the right, or at the left.
local function cell(text, width, left)
  local space = (" "):rep(math.max(0, width - vim.fn.strdisplaywidth(text)))
  return left and text .. space or space .. text
end

local COLUMNS = { { "mean", "mean" }, { "sd", "sd" }, { "5 %", "q05" }, { "median", "median" }, { "95 %", "q95" }, { "R-hat", "r_hat" }, { "ESS", "ess" } }

local function figure(row, key)
  if key == "r_hat" and row[key] then
    return ("%.3f"):format(row[key])
  elseif key == "ess" and row[key] then
    return ("%.0f"):format(row[key])
  end
  return words.number(row[key])
end

function Page:table(rows, rest)
  local widest = 8
  for _, row in ipairs(rows) do
    widest = math.max(widest, vim.fn.strdisplaywidth(row.name))
  end
  local head = cell("", widest, true)
  for _, column in ipairs(COLUMNS) do
    head = head .. cell(column[1], 10)
  end
  self:add("")
  self:add(head .. "  density", "Title")
  for _, row in ipairs(rows) do
    local line = cell(row.name, widest, true)
    for _, column in ipairs(COLUMNS) do
      line = line .. cell(figure(row, column[2]), 10)
    end
    if row.density then
      line = line .. "  " .. words.sparkline(row.density.posterior, 16, 0)
    end
    self:add(line, (row.r_hat or 1) > 1.01 and "DiagnosticWarn" or nil)
    self.sites[#self.lines] = row.name:match("^[^%[]+")
  end
  if rest > 0 then
    self:add(("%d further numbers stand in posterior.nc."):format(rest), "Comment")
  end
end

--- The lines of a run's page; `run` is an entry of `qvr/runs`.
local function page_of(run)
  local page = setmetatable({ lines = {}, marks = {}, sites = {} }, Page)
  local ending = read_json(vim.fs.joinpath(run.directory, "ending.json")) or (type(run.ending) == "table" and run.ending) or {}
  local status = ending.event or run.status
  local verdict = ending.event and words.ending(ending) or status
  local head = ("%s · %s · %s"):format(run.program, run.algorithm:upper(), status)
  page:add(verdict ~= status and head .. " · " .. verdict or head, #words.grave(ending) > 0 and "DiagnosticWarn" or "Title")
  page:add(run.runId .. (ending.seconds and " · " .. words.duration(ending.seconds) or ""), "Comment")
  if type(run.problem) == "string" then
    page:add(run.problem, "DiagnosticError")
  end
  page:ending(ending)
  local summary = read_json(vim.fs.joinpath(run.directory, "summary.json"))
  local rows, rest = {}, 0
  for _, site in ipairs(summary and summary.sites or {}) do
    vim.list_extend(rows, site.elements)
    rest = rest + site.size - #site.elements
  end
  if #rows == 0 then
    rows = ending.posterior or {}
  end
  if #rows > 0 then
    page:table(rows, rest)
  end
  page:add("")
  page:add("<CR> go to the step · o open the folder · r read again · q close", "Comment")
  return page
end

--- Put the cursor on the step of the run's program that binds a name.
local function reveal(run, site)
  local job = read_json(vim.fs.joinpath(run.directory, "job.json"))
  local path = job and job.path
  if not path or not vim.uv.fs_stat(path) then
    vim.notify("qvr: the program of this run is not on the disk", vim.log.levels.WARN)
    return
  end
  vim.cmd.edit(vim.fn.fnameescape(path))
  local escaped = vim.fn.escape(site, "\\")
  local first = vim.fn.search(("\\C^\\s*program\\s\\+%s\\>"):format(vim.fn.escape(run.program, "\\")), "w")
  vim.fn.cursor(first, 1)
  vim.fn.search(("\\C^\\s\\+\\(sample\\|let\\|observe\\|predict\\|marginalize\\)\\s\\+\\zs%s\\>"):format(escaped), "W")
end

local function write(buffer, page)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, page.lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  vim.api.nvim_buf_clear_namespace(buffer, SPACE, 0, -1)
  for _, mark in ipairs(page.marks) do
    vim.api.nvim_buf_set_extmark(buffer, SPACE, mark[1], 0, { line_hl_group = mark[2] })
  end
end

local function name_of(id)
  return "qvr://run/" .. id
end

--- Show a run in a window: an entry of `qvr/runs`.
function M.open(run)
  local buffer = vim.fn.bufadd(name_of(run.runId))
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].buflisted = true
  vim.fn.bufload(buffer)
  local page
  local function read()
    page = page_of(run)
    write(buffer, page)
  end
  local function map(key, act, desc)
    vim.keymap.set("n", key, act, { buffer = buffer, nowait = true, desc = desc })
  end
  map("q", "<Cmd>bdelete<CR>", "Close")
  map("r", read, "Read the run again")
  map("o", function()
    vim.cmd.edit(vim.fn.fnameescape(run.directory))
  end, "Open the run's folder")
  map("<CR>", function()
    local site = page.sites[vim.api.nvim_win_get_cursor(0)[1]]
    if site then
      reveal(run, site)
    end
  end, "Go to the step")
  local group = vim.api.nvim_create_augroup("qvr_results_" .. buffer, { clear = true })
  vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = "QvrRunEvent",
    callback = function(event)
      if event.data.runId == run.runId and vim.tbl_contains({ "finished", "cancelled", "failed", "crashed" }, event.data.event.event) and vim.api.nvim_buf_is_loaded(buffer) then
        read()
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = buffer,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  read()
  vim.cmd.sbuffer(buffer)
  vim.wo.wrap = false
end

return M
