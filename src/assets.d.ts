declare module '*.wasm' {
  const path: string
  export default path
}
declare module '*.data' {
  const path: string
  export default path
}
declare module '*.tar.gz' {
  const path: string
  export default path
}
declare module '*.bundle' {
  const path: string
  export default path
}
declare module '*.sql' {
  const text: string
  export default text
}
declare module '*/swagger-ui-bundle.js' {
  const path: string
  export default path
}
declare module '*.css' {
  const path: string
  export default path
}
