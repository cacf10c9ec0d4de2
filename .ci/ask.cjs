// The README's commands without curl: with a quota of 20 a day, 25 requests are 20 times 200 and 5 times 429.
const { ingress, demoSmallKey } = require(`${process.cwd()}/up.json`)

async function ask() {
  const codes = []
  for (let sent = 0; sent < 25; sent += 1) {
    const answer = await fetch(`${ingress}/hello`, { headers: { 'X-API-Key': demoSmallKey } })
    codes.push(answer.status)
  }
  process.stdout.write(`${codes.join(' ')}\n`)
  process.exit(codes.filter((code) => code === 429).length === 5 ? 0 : 1)
}

ask()
