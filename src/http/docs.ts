import { Elysia } from 'elysia'

export const docs = () => new Elysia({ name: 'docs' })
