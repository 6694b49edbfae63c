-- Drives `policyd lsp` in Neovim as a user does, and prints what Neovim shows as JSON. Arguments: program, file.
local config, file = unpack(vim.v.argv, #vim.v.argv - 1)
local out = { errors = {} }

local function wait(what, condition)
  if not vim.wait(30000, condition, 10) then
    table.insert(out.errors, what)
  end
end

local function findings()
  local found = {}
  for _, it in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, it.code or it.user_data.lsp.code)
  end
  return found
end

-- The configuration of the book.
vim.cmd('filetype on')
vim.cmd('luafile ' .. config)
vim.cmd('edit ' .. file)
wait('the server starts', function()
  local client = vim.lsp.buf_get_clients(0)[1]
  return client and client.initialized
end)
local client = vim.lsp.buf_get_clients(0)[1].id

local function request(method, params)
  local answer, err = vim.lsp.buf_request_sync(0, method, params, 30000)
  if err or not answer[client] then
    table.insert(out.errors, method .. ': ' .. tostring(err))
    return vim.NIL
  end
  return answer[client].result or vim.NIL
end

-- Neovim 0.7 does not declare that it shows lenses. The cases run as soon as it asks for them.
local document = { textDocument = vim.lsp.util.make_text_document_params() }
for _ = 1, 300 do
  out.lens = request('textDocument/codeLens', document)[1].command.title
  if out.lens:find('passed') then
    break
  end
  vim.wait(100)
end

-- A typing mistake, its finding, and its fix, in a buffer that is not saved.
vim.fn.search('decision')
vim.cmd('normal! cwdecison')
wait('a finding', function() return vim.deep_equal(findings(), { 'PD003' }) end)
out.found = findings()
local params = vim.lsp.util.make_range_params()
params.context = { diagnostics = {} }
local actions = request('textDocument/codeAction', params)
out.action = actions[1].title
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
wait('no finding', function() return #vim.diagnostic.get(0) == 0 end)
out.line = vim.fn.getline('.')

-- The other requests, at the id of the guard.
vim.fn.search('no_deploy', 'b')
local here = vim.lsp.util.make_position_params()
local function at(more)
  return vim.tbl_extend('force', here, more or {})
end
out.hover = request('textDocument/hover', at()).contents.value
out.symbols = request('textDocument/documentSymbol', at())[1].name
out.definition = #request('textDocument/definition', at())
out.references = #request('textDocument/references', at({ context = { includeDeclaration = true } }))
out.symbol = request('workspace/symbol', { query = 'deploy' })[1].name
out.renamable = request('textDocument/prepareRename', at()).placeholder
local builtin = { uri = 'policyd:/builtin/session_types.yaml' }
out.content = #request('workspace/textDocumentContent', builtin).text > 0
local run = { command = 'policyd.runCases', arguments = { document.textDocument.uri, 'no_deploy' } }
out.ran = request('workspace/executeCommand', run)
local whole = { start = { line = 0, character = 0 }, ['end'] = here.position }
out.hints = request('textDocument/inlayHint', { textDocument = document.textDocument, range = whole })
out.folds = #request('textDocument/foldingRange', at())
out.tokens = #request('textDocument/semanticTokens/full', at()).data
local options = { tabSize = 2, insertSpaces = true }
out.formatted = #request('textDocument/formatting', at({ options = options }))
vim.lsp.util.apply_workspace_edit(request('textDocument/rename', at({ newName = 'no_release' })), 'utf-16')
out.renamed = vim.fn.getline(1)
out.other = #vim.fn.getbufline('cases.yaml', 1, '$') > 0
vim.fn.append('$', '  when: action.pro')
out.completion = {}
here.position = { line = vim.fn.line('$') - 1, character = #vim.fn.getline('$') }
for _, it in ipairs(request('textDocument/completion', at()).items) do
  table.insert(out.completion, it.label)
end
vim.fn.setline('$', '  when: program.has(')
here.position.character = #vim.fn.getline('$')
out.signature = request('textDocument/signatureHelp', at()).signatures[1].label

vim.lsp.stop_client(client)
wait('the server ends', function() return vim.lsp.client_is_stopped(client) end)
io.stdout:write(vim.json and vim.json.encode(out) or vim.fn.json_encode(out))
vim.cmd('qall!')
