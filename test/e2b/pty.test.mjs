import { test } from 'node:test'
import { assert, failure, sandbox, until } from './lib.mjs'

const box = sandbox()
const bytes = (s) => new TextEncoder().encode(s)

test('a terminal: input, size, exit', async () => {
  let seen = ''
  const t = await box.s.pty.create({ cols: 80, rows: 24, onData: (d) => (seen += new TextDecoder().decode(d)), timeoutMs: 0 })
  await box.s.pty.sendInput(t.pid, bytes('stty size; echo $TERM\n'))
  await until(() => /24 80[\s\S]*xterm-256color/.test(seen))
  await box.s.pty.resize(t.pid, { cols: 100, rows: 30 })
  await box.s.pty.sendInput(t.pid, bytes('stty size\n'))
  await until(() => /30 100/.test(seen))
  await box.s.pty.sendInput(t.pid, bytes('exit 5\n'))
  assert.equal((await failure(t.wait())).exitCode, 5)
})

test('a terminal can be found again', async () => {
  const forever = { timeoutMs: 0 } // else the SDK's own timer keeps node alive for a minute
  const t = await box.s.pty.create({ cols: 80, rows: 24, onData: () => {}, ...forever })
  await t.disconnect()
  let seen = ''
  const again = await box.s.pty.connect(t.pid, { onData: (d) => (seen += new TextDecoder().decode(d)), ...forever })
  await box.s.pty.sendInput(t.pid, bytes('echo again-$((40+2))\n'))
  await until(() => seen.includes('again-42'))
  assert.equal(await box.s.pty.kill(t.pid), true)
  await failure(again.wait())
  assert.equal(await box.s.pty.kill(t.pid), false)
})
