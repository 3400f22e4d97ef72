-- Drives a real Neovim with the plugin, as a user would; run by tests/e2e/test_neovim.py.
-- Arguments: the folder of the plugin, the interpreter, a working folder with bidirectional_rnn_lm.qvr.
local plugin, python, folder = arg[1], arg[2], arg[3]

vim.opt.runtimepath:prepend(plugin)
vim.g.qvr = { python = python }
local walk = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), "walk.lua"))
local step, eventually, messages = walk.step, walk.eventually, walk.messages

local function line_of(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column then
      return number, column - 1, line
    end
  end
  error("no line with " .. text)
end

local function replace(old, new)
  local number, column, line = line_of(old)
  vim.api.nvim_buf_set_lines(0, number - 1, number, false, { line:sub(1, column) .. new .. line:sub(column + #old + 1) })
end

local function go(text)
  local number, column = line_of(text)
  vim.api.nvim_win_set_cursor(0, { number, column })
end

local function request(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 10000) or {}
  for _, answer in pairs(answers) do
    assert(not answer.err, vim.inspect(answer.err))
    return answer.result
  end
end

local function here()
  local client = vim.lsp.get_clients({ name = "qvr" })[1]
  return vim.lsp.util.make_position_params(0, client.offset_encoding)
end

vim.cmd("runtime! ftdetect/qvr.lua plugin/qvr.lua")
vim.cmd("filetype plugin on")
vim.cmd.edit(folder .. "/bidirectional_rnn_lm.qvr")

step("the filetype is found and the server attaches", function()
  assert(vim.bo.filetype == "qvr", vim.bo.filetype)
  eventually("attached", function()
    return vim.lsp.get_clients({ bufnr = 0, name = "qvr" })[1]
  end)
end)

step("before the server answers, each kind of word has its colour", function()
  vim.cmd("syntax enable")
  vim.cmd.new()
  vim.bo.syntax = "qvr"
  vim.api.nvim_buf_set_lines(0, 0, -1, false, {
    "morphism head : Hidden -> Token [role=attention, causal=true] ~ Categorical",
    "let back = embed >> scan(cell, direction=backward) >> weights.dagger",
    "composition log_prob",
    "    sample h : Group <- Normal(loc=mean, scale=digamma(x[mean])) [via=mean]",
  })
  local groups = {
    morphism = "qvrStatement", role = "qvrOption", attention = "qvrRole", ["true"] = "qvrOptionValue",
    Categorical = "qvrFamily", let = "qvrStatement", scan = "qvrCombinator", direction = "qvrCallOption",
    backward = "qvrCallValue", dagger = "qvrMethod", log_prob = "qvrComposition", sample = "qvrStep",
    loc = "qvrArgument", digamma = "qvrBuiltin", via = "qvrOption", Hidden = "",
  }
  for word, group in pairs(groups) do
    vim.fn.cursor(1, 1)
    local place = vim.fn.searchpos("\\C\\<" .. word .. "\\>", "c")
    local found = vim.fn.synIDattr(vim.fn.synID(place[1], place[2], 1), "name")
    assert(found == group, word .. " is " .. found)
  end
  vim.cmd("bwipeout!")
end)

step("the program has no errors", function()
  vim.wait(1500)
  assert(#vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR }) == 0, vim.inspect(vim.diagnostic.get(0)))
end)

step("a wrong width is one error, with both sums", function()
  replace("BwdHidden : Real 64", "BwdHidden : Real 32")
  local found = eventually("one error", function()
    local all = vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR })
    return #all == 1 and all
  end)
  assert(found[1].message:find("96") and found[1].message:find("128"), found[1].message)
end)

step("a code action fixes it", function()
  local found = vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR })[1]
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
  local range = here()
  local params = {
    textDocument = range.textDocument,
    range = { start = range.position, ["end"] = range.position },
    context = { diagnostics = { found.user_data.lsp } },
  }
  local fix
  for _, action in ipairs(request("textDocument/codeAction", params) or {}) do
    if action.title:find("BwdHidden") and action.edit then
      fix = action
    end
  end
  assert(fix, "no fix names BwdHidden")
  vim.lsp.util.apply_workspace_edit(fix.edit, vim.lsp.get_clients({ name = "qvr" })[1].offset_encoding)
  eventually("fixed", function()
    return #vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR }) == 0
  end)
  line_of("BwdHidden : Real 64")
end)

step("hover shows the type of backbone", function()
  go("backbone = fan")
  local result = request("textDocument/hover", here())
  local text = vim.inspect(result.contents)
  assert(text:find("backbone") and text:find("Combined"), text)
end)

step("rename changes every use", function()
  go("FwdHidden : Real")
  vim.lsp.buf.rename("ForwardState")
  eventually("renamed", function()
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"):find("Embedded %* ForwardState %-> ForwardState")
  end)
end)

step("formatting straightens the spaces", function()
  replace("object Token : FinSet 256", "object   Token:FinSet   256")
  vim.wait(300)
  vim.lsp.buf.format({ async = false, timeout_ms = 10000 })
  line_of("object Token : FinSet 256")
end)

vim.cmd.write()

step(":QvrDiagram! writes an SVG", function()
  vim.cmd("QvrDiagram! bidirectional_rnn_lm")
  eventually("the file", function()
    return vim.uv.fs_stat(folder .. "/bidirectional_rnn_lm.svg")
  end)
end)

step(":QvrDiagram opens a page that follows the cursor", function()
  local opened
  vim.ui.open = function(url)
    opened = url
  end
  vim.cmd("QvrDiagram")
  eventually("the page", function()
    return opened
  end)
  go("combine : Combined")
  vim.api.nvim_exec_autocmds("CursorMoved", { buffer = 0 })
  local answer
  vim.system({ "curl", "-s", opened .. "/state?turn=-1" }, { text = true }, function(done)
    answer = done.stdout
  end)
  eventually("an answer", function()
    return answer
  end)
  local state = vim.json.decode(answer)
  assert(state.svg:find("<svg"), "no picture")
  assert(vim.tbl_contains(state.nodes, "combine"), vim.inspect({ state.nodes, vim.api.nvim_win_get_cursor(0), vim.api.nvim_get_current_line() }))
end)

step(":QvrRun reports its progress, :QvrCancel ends it", function()
  local reported
  vim.api.nvim_create_autocmd("LspProgress", {
    callback = function(event)
      local value = event.data.params.value
      if value.kind == "report" and value.message and value.message:find("ELBO") then
        reported = value.message
      end
    end,
  })
  vim.cmd("QvrRun svi data=text:book.txt steps=100000")
  eventually("progress", function()
    return reported
  end, 90)
  vim.cmd("QvrCancel")
  eventually("cancelled", function()
    for _, run in pairs(require("qvr.runs").known) do
      if run.status == "cancelled" then
        return true
      end
    end
  end, 30)
end)

step(":QvrRun to its end tells the result", function()
  vim.cmd("QvrRun svi data=text:book.txt steps=30 held_out_rows=64")
  eventually("finished", function()
    for _, text in ipairs(messages) do
      if text:find("finished") then
        return text
      end
    end
  end, 120)
end)

step(":checkhealth qvr is well", function()
  vim.cmd("checkhealth qvr")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  assert(text:find("qvr%-lsp") and not text:find("ERROR"), text)
end)

step(":help qvr is there", function()
  vim.cmd("helptags " .. vim.fn.fnameescape(plugin .. "/doc"))
  pcall(vim.cmd, "help :QvrRun") -- Debian keeps the parser that colours help files in a package of its own
  assert(vim.api.nvim_buf_get_name(0):find("qvr.txt"), vim.api.nvim_buf_get_name(0))
  assert(#vim.fn.getcompletion(":QvrRun", "help") > 0, "no tag :QvrRun")
end)

vim.cmd("qall!")
