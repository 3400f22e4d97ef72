--- What programs say while they are written: the server draws, the inlays show it; here is how that stands, in `b:qvr_live`.
local M = {}

local KINDS = { "off", "prior", "posterior" }

--- A notification `qvr/live`: its line for a status line, and the autocommand `User QvrLive`. Never a message.
function M.receive(params)
  local buffer = vim.uri_to_bufnr(params.uri)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  vim.b[buffer].qvr_live = params.text
  vim.api.nvim_exec_autocmds("User", { pattern = "QvrLive", data = params })
  vim.cmd("redrawstatus!")
end

--- Tell the server which program the cursor stands in.
function M.look(buffer)
  local client = vim.lsp.get_clients({ name = "qvr", bufnr = buffer })[1]
  local settings = client and client.settings.qvr or {}
  if not client or (settings.live or "off") == "off" then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local function ignore() end
  if vim.fn.has("nvim-0.11") == 1 then
    client:request("qvr/live", params, ignore, buffer)
  else
    client.request("qvr/live", params, ignore, buffer)
  end
end

--- Draw the prior, the posterior, or nothing, until Neovim ends.
function M.set(kind)
  if not vim.tbl_contains(KINDS, kind) then
    vim.notify("qvr: :QvrLive off, prior or posterior", vim.log.levels.ERROR)
    return
  end
  vim.g.qvr = vim.tbl_deep_extend("force", vim.g.qvr or {}, { settings = { live = kind } })
  for _, client in ipairs(vim.lsp.get_clients({ name = "qvr" })) do
    client.settings = vim.tbl_deep_extend("force", client.settings or {}, { qvr = { live = kind } })
    local told = { settings = client.settings }
    if vim.fn.has("nvim-0.11") == 1 then
      client:notify("workspace/didChangeConfiguration", told)
    else
      client.notify("workspace/didChangeConfiguration", told)
    end
    for buffer in pairs(client.attached_buffers) do
      vim.b[buffer].qvr_live = nil
      if kind ~= "off" then
        vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
      end
    end
  end
end

function M.kinds(lead)
  return vim.tbl_filter(function(kind)
    return vim.startswith(kind, lead)
  end, KINDS)
end

return M
