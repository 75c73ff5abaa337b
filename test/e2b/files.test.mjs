import { test } from 'node:test'
import { FileNotFoundError, FileType, InvalidArgumentError, NotFoundError, SandboxError } from 'e2b'
import { assert, failure, sandbox, sleep, until } from './lib.mjs'

const box = sandbox()

test('write and read, in every format', async () => {
  const info = await box.s.files.write('a.txt', 'content ü')
  assert.deepEqual([info.name, info.type, info.path], ['a.txt', 'file', '/home/user/a.txt'])
  assert.equal(await box.s.files.read('a.txt'), 'content ü')
  assert.equal(Buffer.from(await box.s.files.read('a.txt', { format: 'bytes' })).toString(), 'content ü')
  assert.equal(await (await box.s.files.read('a.txt', { format: 'blob' })).text(), 'content ü')
  let streamed = ''
  for await (const piece of await box.s.files.read('a.txt', { format: 'stream' })) streamed += Buffer.from(piece)
  assert.equal(streamed, 'content ü')
  await box.s.files.write('a.txt', 'less')
  assert.equal(await box.s.files.read('a.txt'), 'less')
})

test('bytes of every kind, into directories that are not there yet', async () => {
  const bytes = new Uint8Array(3_000_000).map((_, i) => (i * 7) & 255)
  await box.s.files.write('deep/er/bytes', bytes.buffer)
  assert.deepEqual(Buffer.from(await box.s.files.read('deep/er/bytes', { format: 'bytes' })), Buffer.from(bytes))
  await box.s.files.write('blob', new Blob(['b', 'lob']))
  assert.equal(await box.s.files.read('blob'), 'blob')
  await box.s.files.write('empty', '')
  assert.equal(await box.s.files.read('empty'), '')
})

test('several files at once', async () => {
  const written = await box.s.files.write([
    { path: 'many/one', data: '1' },
    { path: '/tmp/many-two', data: '2' },
  ])
  assert.deepEqual(written.map((f) => f.path), ['/home/user/many/one', '/tmp/many-two'])
  assert.equal(await box.s.files.read('/tmp/many-two'), '2')
  assert.deepEqual(await box.s.files.write([]), [])
})

test('octet-stream and gzip', async () => {
  const text = 'squeeze me '.repeat(50_000)
  await box.s.files.write('z', text, { useOctetStream: true, gzip: true })
  assert.equal(await box.s.files.read('z'), text)
  await box.s.files.write('o', text, { useOctetStream: true })
  assert.equal((await box.s.files.read('o', { gzip: true })).length, text.length)
})

test('what there is to know of a file', async () => {
  await box.s.files.write('info.txt', '12345')
  const i = await box.s.files.getInfo('info.txt')
  assert.deepEqual(
    [i.name, i.type, i.path, i.size, i.mode, i.permissions, i.owner, i.group],
    ['info.txt', FileType.FILE, '/home/user/info.txt', 5, 0o644, '-rw-r--r--', 'user', 'user'],
  )
  assert.ok(Math.abs(i.modifiedTime - Date.now()) < 10_000)
  await box.s.commands.run('ln -sf info.txt link; ln -sf /nowhere dangling')
  const l = await box.s.files.getInfo('link')
  assert.deepEqual([l.type, l.symlinkTarget], [FileType.FILE, '/home/user/info.txt'])
  assert.ok((await failure(box.s.files.getInfo('none'))) instanceof NotFoundError)
})

test('directories', async () => {
  assert.equal(await box.s.files.makeDir('dir/sub'), true)
  assert.equal(await box.s.files.makeDir('dir/sub'), false)
  await box.s.files.write('dir/f', 'x')
  assert.ok((await failure(box.s.files.makeDir('dir/f'))) instanceof InvalidArgumentError)
  const names = async (o) => (await box.s.files.list('dir', o)).map((e) => e.path).sort()
  assert.deepEqual(await names(), ['/home/user/dir/f', '/home/user/dir/sub'])
  await box.s.files.write('dir/sub/g', 'x')
  assert.deepEqual(await names({ depth: 2 }), ['/home/user/dir/f', '/home/user/dir/sub', '/home/user/dir/sub/g'])
  assert.ok((await failure(box.s.files.list('none'))) instanceof NotFoundError)
})

test('exists, rename, remove', async () => {
  await box.s.files.write('old', 'x')
  assert.equal(await box.s.files.exists('old'), true)
  const moved = await box.s.files.rename('old', 'some/new')
  assert.equal(moved.path, '/home/user/some/new')
  assert.equal(await box.s.files.exists('old'), false)
  assert.ok((await failure(box.s.files.rename('old', 'x'))) instanceof NotFoundError)
  await box.s.files.remove('some')
  assert.equal(await box.s.files.exists('some'), false)
  await box.s.files.remove('some')
})

test('failures', async () => {
  assert.ok((await failure(box.s.files.read('none'))) instanceof FileNotFoundError)
  assert.ok((await failure(box.s.files.read('/tmp'))) instanceof SandboxError)
  assert.ok((await failure(box.s.files.write('/tmp', 'x'))) instanceof SandboxError)
  assert.ok((await failure(box.s.files.write('/usr/x', 'x'))) instanceof SandboxError)
})

test('metadata', async () => {
  const metadata = { author: 'me', purpose: 'test' }
  assert.deepEqual((await box.s.files.write('m', 'x', { metadata })).metadata, metadata)
  assert.deepEqual((await box.s.files.getInfo('m')).metadata, metadata)
  assert.deepEqual((await box.s.files.list('.')).find((e) => e.name === 'm').metadata, metadata)
  assert.deepEqual((await box.s.files.rename('m', 'n')).metadata, metadata)
  assert.equal((await box.s.files.write('n', 'y')).metadata, undefined)
  assert.equal((await box.s.files.getInfo('n')).metadata, undefined)
})

test('signed URLs need no header', async () => {
  await box.s.files.write('signed.txt', 'signed content')
  const url = await box.s.downloadUrl('signed.txt', { useSignatureExpiration: 60 })
  assert.equal(await (await fetch(url)).text(), 'signed content')
  assert.equal(await (await fetch(await box.s.downloadUrl('signed.txt'))).text(), 'signed content')
  const form = new FormData()
  form.append('file', new Blob(['uploaded']), 'ignored')
  assert.equal((await fetch(await box.s.uploadUrl('up.txt'), { method: 'POST', body: form })).status, 200)
  assert.equal(await box.s.files.read('up.txt'), 'uploaded')
  const forged = new URL(url)
  forged.searchParams.set('path', '/etc/passwd')
  assert.ok([401, 403, 404].includes((await fetch(forged)).status))
  const soon = await box.s.downloadUrl('signed.txt', { useSignatureExpiration: 1 })
  await sleep(2100)
  const late = await fetch(soon)
  assert.equal(late.status, 401)
  assert.match((await late.json()).message, /already expired/)
})

test('watching', async () => {
  await box.s.files.makeDir('watched')
  const events = []
  const w = await box.s.files.watchDir('watched', (e) => events.push(e), { recursive: true, includeEntry: true })
  const has = (type, name) => () => events.some((e) => e.type === type && e.name === name)
  await box.s.files.write('watched/f', 'x')
  await until(has('create', 'f'))
  await until(has('write', 'f'))
  assert.equal(events.find((e) => e.type === 'create').entry?.path, '/home/user/watched/f')
  await box.s.files.makeDir('watched/sub')
  await until(has('create', 'sub'))
  await box.s.files.write('watched/sub/g', 'x')
  await until(has('create', 'sub/g'))
  await box.s.commands.run('chmod 600 watched/f; mv watched/f watched/h; rm watched/h')
  await until(has('chmod', 'f'))
  await until(has('rename', 'f'))
  await until(has('remove', 'h'))
  await w.stop()
  assert.ok((await failure(box.s.files.watchDir('none', () => {}))) instanceof FileNotFoundError)
  assert.ok((await failure(box.s.files.watchDir('signed.txt', () => {}))) instanceof SandboxError)
})
