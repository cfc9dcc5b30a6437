import { auditOperations } from './audit/operations.ts'
import { githubOperations } from './github/operations.ts'
import { historyOperations } from './history/operations.ts'
import { impactOperations } from './impact/operations.ts'
import { keyOperations } from './keys/operations.ts'
import { usageOperations } from './limit/operations.ts'
import { promptOperations } from './prompts/operations.ts'
import { signalOperations } from './signals/operations.ts'
import { exportOperations } from './signals/operations_export.ts'
import { statsOperations } from './stats/operations.ts'
import { endpointOperations } from './webhooks/operations.ts'

/** Everything that the interface can do. The routes, the OpenAPI document, the tools of agents and commands come from here. */
export const operations = [
  ...historyOperations,
  ...signalOperations,
  ...exportOperations,
  ...statsOperations,
  ...usageOperations,
  ...impactOperations,
  ...keyOperations,
  ...promptOperations,
  ...githubOperations,
  ...endpointOperations,
  ...auditOperations,
]
