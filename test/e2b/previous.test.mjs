// SDKs of before, which use the older paths of the API: the first that can be pointed at another server by variables, and
// the last before the new paths.
import { test } from 'node:test'
import { Sandbox as First } from 'e2b-2.20'
import { Sandbox as Last } from 'e2b-2.50'
import { assert, failure } from './lib.mjs'

for (const [name, Sandbox] of [['2.20.0', First], ['2.50.0', Last]])
  test(`e2b ${name}`, async () => {
    const s = await Sandbox.create({ timeoutMs: 60_000, metadata: { sdk: name } })
    try {
      assert.equal((await s.commands.run('echo hi')).stdout, 'hi\n')
      assert.equal((await failure(s.commands.run('exit 2'))).exitCode, 2)
      const h = await s.commands.run('cat', { background: true, stdin: true })
      await s.commands.sendStdin(h.pid, 'in\n')
      await h.kill()
      await s.files.write('f', 'text')
      assert.equal(await s.files.read('f'), 'text')
      assert.equal(await s.files.makeDir('d'), true)
      assert.deepEqual((await s.files.list('.')).map((e) => e.name).sort(), ['d', 'f'])
      const events = []
      const w = await s.files.watchDir('d', (e) => events.push(e.name))
      await s.files.write('d/g', 'x')
      await new Promise((resolve) => setTimeout(resolve, 500))
      await w.stop()
      assert.ok(events.includes('g'))
      assert.equal(await s.isRunning(), true)
      await s.setTimeout(30_000)
      const again = await Sandbox.connect(s.sandboxId)
      assert.equal(await again.files.read('f'), 'text')
    } finally {
      await s.kill()
    }
  })
