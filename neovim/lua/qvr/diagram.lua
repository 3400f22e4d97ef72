--- Diagrams: an SVG file, or a browser page that follows the cursor and leads back to the source.
local client = require("qvr.client")

local M = {}

local function contains(range, line, character)
  local after = line > range.start.line or (line == range.start.line and character >= range.start.character)
  local before = line < range["end"].line or (line == range["end"].line and character <= range["end"].character)
  return after and before
end

--- Ids of the nodes whose smallest range around the place is the smallest of all.
function M.nodes_at(nodes, line, character)
  local best, found = math.huge, {}
  for _, node in ipairs(nodes) do
    for _, range in ipairs(node.ranges) do
      if contains(range, line, character) then
        local size = (range["end"].line - range.start.line) * 10000 + range["end"].character - range.start.character
        if size < best then
          best, found = size, { node.id }
        elseif size == best and not vim.tbl_contains(found, node.id) then
          table.insert(found, node.id)
        end
      end
    end
  end
  return found
end

local function ask(buffer, name, format, take)
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) }, format = format, name = name }
  client.request(buffer, "qvr/diagram", params, take)
end

--- Write the SVG beside the program.
local function write(buffer, name)
  ask(buffer, name, "svg", function(answer)
    local folder = vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
    local path = vim.fs.joinpath(folder ~= "" and folder or vim.fn.getcwd(), answer.name .. ".svg")
    local file = assert(io.open(path, "w"))
    file:write(answer.text)
    file:close()
    vim.notify("qvr: wrote " .. path)
  end)
end

--- @param options { name: string?, file: boolean? }
function M.open(options)
  local buffer = vim.api.nvim_get_current_buf()
  if options.file then
    write(buffer, options.name)
    return
  end
  M.follow(buffer, options.name)
end

--- Show the browser page and keep it true.
function M.follow(buffer, name)
  local page = require("qvr.page")
  local group = vim.api.nvim_create_augroup("qvr_diagram_" .. buffer, { clear = true })
  local timer = assert(vim.uv.new_timer())
  local graph

  local function here()
    if graph and vim.api.nvim_get_current_buf() == buffer then
      local row, column = unpack(vim.api.nvim_win_get_cursor(0))
      page.highlight(M.nodes_at(graph.nodes, row - 1, column))
    end
  end

  local function refresh(first)
    ask(buffer, name, "svg", function(answer)
      graph = answer
      page.show(answer.name, answer.text, answer.stale, function(id)
        M.reveal(buffer, graph, id)
      end)
      here()
      if first then
        vim.notify("qvr: " .. page.url())
        vim.ui.open(page.url())
      end
    end)
  end

  vim.api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI" }, { group = group, buffer = buffer, callback = here })
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
    group = group,
    buffer = buffer,
    callback = function()
      timer:start(200, 0, vim.schedule_wrap(function()
        refresh(false)
      end))
    end,
  })
  vim.api.nvim_create_autocmd("BufDelete", {
    group = group,
    buffer = buffer,
    callback = function()
      timer:close()
      page.stop()
    end,
  })
  page.start()
  refresh(true)
end

--- Go to the source of a node, in the file that declares it.
function M.reveal(buffer, graph, id)
  for _, node in ipairs(graph.nodes) do
    if node.id == id and type(node.home) == "table" then
      local client = vim.lsp.get_clients({ name = "qvr", bufnr = buffer })[1]
      vim.lsp.util.show_document(node.home, client and client.offset_encoding or "utf-16", { focus = true })
    elseif node.id == id and type(node.range) == "table" then
      local window = vim.fn.bufwinid(buffer)
      if window ~= -1 then
        vim.api.nvim_set_current_win(window)
        vim.api.nvim_win_set_cursor(window, { node.range.start.line + 1, node.range.start.character })
      end
    end
  end
end

return M
