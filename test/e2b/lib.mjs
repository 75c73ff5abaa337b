// What the tests share: a sandbox that is killed afterwards, and waiting.
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { Sandbox } from 'e2b'

export { assert }

/** A sandbox for the tests of one file: `box.s`. */
export function sandbox(options = {}) {
  const box = {}
  before(async () => {
    box.s = await Sandbox.create({ timeoutMs: 120_000, ...options })
  })
  after(async () => {
    await box.s?.kill()
  })
  return box
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export async function until(what, ms = 5000) {
  const end = Date.now() + ms
  for (;;) {
    const result = await what()
    if (result) return result
    assert.ok(Date.now() < end, 'waited too long')
    await sleep(20)
  }
}

/** The error that a promise ends with. */
export async function failure(promise) {
  try {
    await promise
  } catch (e) {
    return e
  }
  assert.fail('it should have failed')
}
