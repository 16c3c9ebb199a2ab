// Leads what cells fetch through the proxy that the environment names, as other programs do by themselves. Node.js does so from
// version 24 on (NODE_USE_ENV_PROXY); before, its fetch takes whatever undici, of which it is made, says is the dispatcher of all.
import { process } from './intrinsics.mjs'

export async function fetchThroughProxy() {
  if (!process.env.HTTPS_PROXY || process.allowedNodeEnvironmentFlags.has('--use-env-proxy')) return
  const { EnvHttpProxyAgent, setGlobalDispatcher } = (await import('undici')).default
  const warn = process.emitWarning
  process.emitWarning = () => {} // that it is experimental is for us to know
  try {
    setGlobalDispatcher(new EnvHttpProxyAgent())
  } finally {
    process.emitWarning = warn
  }
}
