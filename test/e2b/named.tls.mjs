// Sandboxes under names of their own and TLS, as E2B's own service has them: the newest SDK, and the last of the previous major
// version, which knows no other way.
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { Sandbox as Before } from 'e2b-1'
import { assert, failure, until } from './lib.mjs'

for (const [name, Kind] of [['newest', Sandbox], ['1.x', Before]])
  test(`by name: e2b ${name}`, async () => {
    const s = await Kind.create({ timeoutMs: 60_000, metadata: { sdk: name } })
    try {
      assert.equal(await s.isRunning(), true)
      assert.equal((await s.commands.run('echo hi')).stdout, 'hi\n')
      assert.equal((await failure(s.commands.run('exit 2'))).exitCode, 2)
      const h = await s.commands.run('cat', { background: true, stdin: true })
      await s.commands.sendStdin(h.pid, 'in\n')
      assert.equal(await h.kill(), true)
      await s.files.write('f', 'text')
      assert.equal(await s.files.read('f'), 'text')
      assert.deepEqual((await s.files.list('.')).map((e) => e.name), ['f'])
      const again = await Kind.connect(s.sandboxId)
      assert.equal(await again.files.read('f'), 'text')
      await s.commands.run('python3 -m http.server 8080', { background: true, timeoutMs: 0 })
      const there = () => fetch(`https://${s.getHost(8080)}/f`).catch(() => ({ status: 0 }))
      await until(async () => (await there()).status === 200)
      assert.equal(await (await there()).text(), 'text')
      await s.setTimeout(30_000)
      const page = Kind.list({ query: { metadata: { sdk: name } } })
      assert.equal((page.nextItems ? await page.nextItems() : await page).length, 1)
    } finally {
      await s.kill()
    }
    assert.equal(await s.isRunning(), false)
  })
