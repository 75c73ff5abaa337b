// Names below localhost are this machine: some systems know that, some do not. Loaded before a test that reaches sandboxes by name.
const dns = require('node:dns')
const lookup = dns.lookup
dns.lookup = (name, options, done) => {
  if (!name.endsWith('.localhost')) return lookup(name, options, done)
  const callback = done ?? options
  if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }])
  else callback(null, '127.0.0.1', 4)
}
