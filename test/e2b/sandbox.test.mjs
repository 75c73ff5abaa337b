import http from 'node:http'
import { test } from 'node:test'
import { AuthenticationError, NotFoundError, Sandbox, SandboxNotFoundError } from 'e2b'
import { assert, failure, sandbox, sleep, until } from './lib.mjs'

const base = new URL(process.env.E2B_SANDBOX_URL)

test('create, find again, kill', async () => {
  const s = await Sandbox.create({ timeoutMs: 60_000, metadata: { purpose: 'life', 'odd key&': 'odd=value ü' } })
  assert.equal(await s.isRunning(), true)
  const info = await s.getInfo()
  assert.deepEqual([info.sandboxId, info.state, info.metadata.purpose], [s.sandboxId, 'running', 'life'])
  assert.equal(info.metadata['odd key&'], 'odd=value ü')
  await s.files.write('kept', 'here')
  const again = await Sandbox.connect(s.sandboxId)
  assert.equal(await again.files.read('kept'), 'here')
  assert.equal(await s.kill(), true)
  assert.equal(await s.isRunning(), false)
  assert.equal(await Sandbox.kill(s.sandboxId), false)
  assert.ok((await failure(Sandbox.connect(s.sandboxId))) instanceof NotFoundError)
})

test('lists: by metadata, in pages', async () => {
  const mark = `m${Date.now()}`
  const all = await Promise.all([1, 2, 3, 4, 5].map((i) => Sandbox.create({ timeoutMs: 60_000, metadata: { mark, n: String(i) } })))
  try {
    const page = Sandbox.list({ query: { metadata: { mark } }, limit: 2 })
    const seen = []
    const sizes = []
    while (page.hasNext) {
      const items = await page.nextItems()
      sizes.push(items.length)
      seen.push(...items.map((i) => i.sandboxId))
    }
    assert.deepEqual(sizes, [2, 2, 1])
    assert.deepEqual([...seen].sort(), all.map((s) => s.sandboxId).sort())
    const one = await Sandbox.list({ query: { metadata: { mark, n: '3' } } }).nextItems()
    assert.deepEqual(one.map((i) => i.sandboxId), [all[2].sandboxId])
  } finally {
    await Promise.all(all.map((s) => s.kill()))
  }
})

test('time-outs: set, extended, reached', async () => {
  const s = await Sandbox.create({ timeoutMs: 60_000 })
  await s.setTimeout(2000)
  const left = (await s.getInfo()).endAt - Date.now()
  assert.ok(left < 3000, `${left} ms`)
  await sleep(3000)
  assert.equal(await s.isRunning(), false)
  assert.ok((await failure(s.commands.run('true'))) instanceof SandboxNotFoundError)
})

test('metrics', async () => {
  const s = await Sandbox.create({ timeoutMs: 60_000 })
  try {
    const m = await until(async () => (await s.getMetrics()).at(-1))
    assert.ok(m.memTotal > 0 && m.cpuCount > 0)
  } finally {
    await s.kill()
  }
})

test('a wrong key', async () => {
  assert.ok((await failure(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }))) instanceof AuthenticationError)
})

const box = sandbox({ secure: true })

test('secure: nothing without the token', async () => {
  const ask = (path, headers) =>
    fetch(new URL(path, base), { method: path.startsWith('/files') ? 'GET' : 'POST', body: path.startsWith('/files') ? undefined : '{}', headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': box.s.sandboxId, 'E2b-Sandbox-Port': '49983', ...headers } })
  assert.equal((await ask('/process.Process/List', {})).status, 401)
  assert.equal((await ask('/process.Process/List', { 'X-Access-Token': 'wrong' })).status, 401)
  assert.equal((await ask('/files?path=/etc/hostname', {})).status, 401)
})

/** A request to a port of the sandbox, by headers as the SDK sends them. */
function inside(s, port, { path = '/', headers = {} } = {}) {
  return fetch(new URL(path, base), { headers: { 'E2b-Sandbox-Id': s.sandboxId, 'E2b-Sandbox-Port': String(port), ...headers } })
}

const serve = `
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade"):
            self.send_response(101); self.send_header("Connection", "Upgrade"); self.send_header("Upgrade", "echo"); self.end_headers()
            self.wfile.flush()
            while (data := self.connection.recv(1000)):
                self.connection.sendall(data.upper())
            self.close_connection = True
            return
        body = f"{self.path} {self.headers['Host']}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 8080), H).serve_forever()
`

test('getHost: a port inside, by header, by host name, and upgraded', async () => {
  await box.s.files.write('serve.py', serve)
  await box.s.commands.run('python3 serve.py', { background: true, timeoutMs: 0 })
  await until(async () => (await inside(box.s, 8080)).status === 200)
  assert.match(await (await inside(box.s, 8080, { path: '/x?y=1' })).text(), /^\/x\?y=1 /)
  const host = box.s.getHost(8080)
  assert.match(host, new RegExp(`^8080-${box.s.sandboxId}\\.`))
  const byName = await new Promise((resolve, reject) => {
    http.get({ host: base.hostname, port: base.port, path: '/named', headers: { Host: host } }, (r) => {
      let body = ''
      r.on('data', (d) => (body += d)).on('end', () => resolve(body))
    }).on('error', reject)
  })
  assert.equal(byName, `/named ${host}`)
  const socket = await new Promise((resolve, reject) => {
    const r = http.request({ host: base.hostname, port: base.port, headers: { Host: host, Connection: 'Upgrade', Upgrade: 'echo' } })
    r.on('upgrade', (_, s) => resolve(s)).on('response', (m) => reject(new Error(String(m.statusCode)))).on('error', reject).end()
  })
  socket.write('ping')
  assert.equal(String(await new Promise((resolve) => socket.once('data', resolve))), 'PING')
  socket.destroy()
})

test('a port where nobody listens', async () => {
  const r = await inside(box.s, 9999)
  assert.equal(r.status, 502)
  const body = await r.json()
  assert.deepEqual([body.sandboxId, body.port, body.code], [box.s.sandboxId, 9999, 502])
  assert.match(body.message, /port is not open/)
})

test('traffic that is not public needs the token', async () => {
  const s = await Sandbox.create({ timeoutMs: 60_000, network: { allowPublicTraffic: false } })
  try {
    assert.ok(s.trafficAccessToken)
    assert.equal((await inside(s, 9999)).status, 403)
    assert.equal((await inside(s, 9999, { headers: { 'e2b-traffic-access-token': s.trafficAccessToken } })).status, 502)
  } finally {
    await s.kill()
  }
})
