-- wrk URL -- FILE RUN_ID [count-statuses]
-- Sends the requests of the file one after the other, one a line: method, path, key, idempotency key and body between
-- tabs. Where a request has the placeholder for something unique, each one sent has the run's id and a number there.
-- Counting the answers by status costs wrk so much that it is not done while measuring.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local placeholder = '@unique@@@@@@@@@'

function init(args)
  requests = {}
  sent = 0
  run_id = args[2]
  for line in io.lines(args[1]) do
    local method, path, key, idempotency_key, body = line:match('^(.-)\t(.-)\t(.-)\t(.-)\t(.*)$')
    local headers = { ['Authorization'] = 'Bearer ' .. key, ['Content-Type'] = 'application/json' }
    if idempotency_key ~= '' then
      headers['Idempotency-Key'] = idempotency_key
    end
    local text = wrk.format(method, path, headers, body ~= '' and body or nil)
    local first, last = text:find(placeholder, 1, true)
    if first then
      table.insert(requests, { before = text:sub(1, first - 1), after = text:sub(last + 1) })
    else
      table.insert(requests, text)
    end
  end
  statuses = {}
  if args[3] == 'count-statuses' then
    response = function(status)
      statuses[tostring(status)] = (statuses[tostring(status)] or 0) + 1
    end
  end
end

function request()
  local next_request = requests[sent % #requests + 1]
  sent = sent + 1
  if type(next_request) == 'string' then
    return next_request
  end
  return next_request.before .. run_id .. string.format('%08x', sent) .. next_request.after
end

function done(summary, latency)
  local errors = summary.errors
  local seen = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get('statuses')) do
      seen[status] = (seen[status] or 0) + count
    end
  end
  local statuses = {}
  for status, count in pairs(seen) do
    table.insert(statuses, string.format('"%s":%d', status, count))
  end
  local fields = {
    string.format('"requests":%d', summary.requests),
    string.format('"seconds":%f', summary.duration / 1e6),
    string.format('"p50Ms":%f', latency:percentile(50) / 1e3),
    string.format('"p99Ms":%f', latency:percentile(99) / 1e3),
    -- wrk's own count of the answers from 400 on.
    string.format('"failed":%d', errors.status),
    string.format('"broken":%d', errors.connect + errors.read + errors.write + errors.timeout),
    '"statuses":{' .. table.concat(statuses, ',') .. '}',
  }
  print('{' .. table.concat(fields, ',') .. '}')
end
