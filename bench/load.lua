-- wrk URL -- FILE [look]
-- Sends the requests of the file in turn, one a line: method, path, key and body between tabs.
-- With `look` it counts the answers by status. That costs wrk so much that it is not done while measuring.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  requests = {}
  position = 0
  for line in io.lines(args[1]) do
    local method, path, key, body = line:match('^(.-)\t(.-)\t(.-)\t(.*)$')
    local headers = { ['Authorization'] = 'Bearer ' .. key, ['Content-Type'] = 'application/json' }
    table.insert(requests, wrk.format(method, path, headers, body ~= '' and body or nil))
  end
  statuses = {}
  if args[2] == 'look' then
    response = function(status)
      statuses[tostring(status)] = (statuses[tostring(status)] or 0) + 1
    end
  end
end

function request()
  position = position % #requests + 1
  return requests[position]
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
    string.format('"refused":%d', errors.status),
    string.format('"broken":%d', errors.connect + errors.read + errors.write + errors.timeout),
    '"statuses":{' .. table.concat(statuses, ',') .. '}',
  }
  print('{' .. table.concat(fields, ',') .. '}')
end
