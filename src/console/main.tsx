import { render } from 'preact'
import { listenToLinks } from './client/router.ts'
import { takeKeyFromAddress } from './client/session.ts'
import { Shell } from './shell.tsx'
import './style.css'

// The key is taken before anything else, so that it is in the address for no longer than it must.
const linkKey = takeKeyFromAddress()
listenToLinks()
render(<Shell linkKey={linkKey} />, document.getElementById('console') as HTMLElement)
