import { test } from 'node:test'
import { AuthenticationError, CommandExitError, InvalidArgumentError, Sandbox, TimeoutError } from 'e2b'
import { assert, failure, sandbox, sleep, until } from './lib.mjs'

const box = sandbox({ envs: { FROM_CREATE: 'yes' } })

test('foreground: output of both streams and the exit code', async () => {
  const r = await box.s.commands.run('echo out; echo err >&2')
  assert.deepEqual([r.exitCode, r.stdout, r.stderr, r.error], [0, 'out\n', 'err\n', undefined])
})

test('another exit code is an error that knows everything', async () => {
  const e = await failure(box.s.commands.run('echo out; exit 3'))
  assert.ok(e instanceof CommandExitError)
  assert.deepEqual([e.exitCode, e.stdout, e.error], [3, 'out\n', 'exit status 3'])
})

test('output is streamed to callbacks', async () => {
  const seen = []
  await box.s.commands.run('for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.2; done', {
    onStdout: (d) => seen.push(['o', d, Date.now()]),
    onStderr: (d) => seen.push(['e', d, Date.now()]),
  })
  assert.deepEqual(seen.filter((s) => s[0] === 'o').map((s) => s[1]).join(''), '1\n2\n3\n')
  assert.ok(seen.at(-1)[2] - seen[0][2] >= 300, 'it came while the command ran')
})

test('variables, directory and user', async () => {
  const r = await box.s.commands.run('echo $FROM_CREATE/$MINE/$USER/$HOME; pwd', { envs: { MINE: 'm' } })
  assert.equal(r.stdout, 'yes/m/user//home/user\n/home/user\n')
  assert.equal((await box.s.commands.run('echo $FROM_CREATE', { envs: { FROM_CREATE: 'no' } })).stdout, 'no\n')
  assert.equal((await box.s.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  assert.equal((await box.s.commands.run('id -un')).stdout, 'user\n')
  assert.ok((await failure(box.s.commands.run('true', { cwd: '/no/where' }))) instanceof InvalidArgumentError)
  assert.ok((await failure(box.s.commands.run('true', { user: 'stranger' }))) instanceof AuthenticationError)
})

test('root is a user too', async () => {
  assert.equal((await box.s.commands.run('id -u; echo $HOME', { user: 'root' })).stdout, '0\n/root\n')
})

test('background: wait, list, kill', async () => {
  const h = await box.s.commands.run('sleep 60', { background: true })
  assert.ok(h.pid > 0)
  await box.s.commands.run(`kill -0 ${h.pid}`)
  const listed = await box.s.commands.list()
  assert.ok(listed.some((p) => p.pid === h.pid && p.args.includes('sleep 60')))
  assert.equal(await box.s.commands.kill(h.pid), true)
  assert.equal((await failure(h.wait())).error, 'signal: killed')
  assert.equal(await box.s.commands.kill(999_999), false)
  assert.equal(await h.kill(), false)
})

test('standard input', async () => {
  const h = await box.s.commands.run('cat', { background: true, stdin: true })
  await box.s.commands.sendStdin(h.pid, 'first ')
  await box.s.commands.sendStdin(h.pid, 'second ü')
  await box.s.commands.closeStdin(h.pid)
  assert.equal((await h.wait()).stdout, 'first second ü')
})

test('connect to a command that runs, and to one that has just ended', async () => {
  const h = await box.s.commands.run('sleep 1; echo done; exit 4', { background: true })
  const other = await box.s.commands.connect(h.pid)
  await h.disconnect()
  const e = await failure(other.wait())
  assert.deepEqual([e.exitCode, e.stdout], [4, 'done\n'])
  assert.equal((await failure((await box.s.commands.connect(h.pid)).wait())).exitCode, 4)
})

test('a command outlives its client', async () => {
  const h = await box.s.commands.run('sleep 1; echo x > /tmp/outlived', { background: true })
  await h.disconnect()
  await until(async () => box.s.files.exists('/tmp/outlived'))
})

test('a time-out ends the command', async () => {
  const before = Date.now()
  assert.ok((await failure(box.s.commands.run('sleep 30; true # slow', { timeoutMs: 500 }))) instanceof TimeoutError)
  assert.ok(Date.now() - before < 5000)
  await until(async () => !(await box.s.commands.list()).some((p) => p.args.join(' ').includes('# slow')))
})

test('no time-out: keep-alive carries silence', async () => {
  assert.equal((await box.s.commands.run('sleep 2; echo x', { timeoutMs: 0 })).stdout, 'x\n')
})

test('much output, and bytes that are no text', async () => {
  assert.equal((await box.s.commands.run('head -c 8000000 /dev/zero | tr "\\0" x')).stdout.length, 8_000_000)
  assert.equal((await box.s.commands.run("printf 'a\\377b'")).stdout, 'a\ufffdb')
})

test('many at once', async () => {
  const all = await Promise.all([...Array(30).keys()].map((i) => box.s.commands.run(`echo ${i}`)))
  assert.deepEqual(all.map((r) => r.stdout.trim()), [...Array(30).keys()].map(String))
})

test('a sandbox that is killed ends its commands, and says so', async () => {
  const s = await Sandbox.create({ timeoutMs: 60_000 })
  const h = await s.commands.run('sleep 60', { background: true })
  const ended = failure(h.wait())
  await sleep(200)
  await s.kill()
  assert.match((await ended).message, /killed or reached its end of life/)
  assert.equal(await s.isRunning(), false)
})
