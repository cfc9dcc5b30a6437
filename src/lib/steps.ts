/** Cuts a list into steps of at most `maxWeight`, in order. Only a step of one item may exceed it. */
export function cutSteps<Item>(items: Item[], weightOf: (item: Item) => number, maxWeight: number): Item[][] {
  const steps: Item[][] = []
  let left = 0
  for (const item of items) {
    const weight = weightOf(item)
    const step = weight <= left ? steps.at(-1) : undefined
    if (step) step.push(item)
    else steps.push([item])
    left = (step ? left : maxWeight) - weight
  }
  return steps
}
