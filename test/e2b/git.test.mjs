import { test } from 'node:test'
import { assert, sandbox } from './lib.mjs'

const box = sandbox()

test('git helpers', async () => {
  const repo = '/home/user/repo'
  await box.s.git.init(repo, { initialBranch: 'main' })
  await box.s.git.configureUser('A Name', 'a@example.com')
  await box.s.files.write(`${repo}/file`, 'x')
  assert.equal((await box.s.git.status(repo)).hasUntracked, true)
  await box.s.git.add(repo)
  await box.s.git.commit(repo, 'first')
  assert.equal((await box.s.git.status(repo)).isClean, true)
  await box.s.git.createBranch(repo, 'side')
  const branches = await box.s.git.branches(repo)
  assert.deepEqual([...branches.branches].sort(), ['main', 'side'])
  assert.equal(branches.currentBranch, 'side')
})
