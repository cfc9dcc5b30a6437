/** The root of the service, at whatever path a proxy mounts it: this script is in its folder `console`. */
export const root = new URL('..', import.meta.url)

/** The address of a place of the service, as `/signals`, as a link needs it. */
export const href = (place: string): string => root.pathname + place.slice(1)
