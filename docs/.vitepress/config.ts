import { readFileSync } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { defineConfig } from 'vitepress'
import { anchorOf } from '../src/anchor-of.ts'
import { listOperations } from '../src/api-reference.ts'
import { rewriteLinks, textPlace } from '../src/links.ts'
import { indexNames } from '../src/names.ts'
import { parts, placeOf } from '../src/pages.ts'
import { searchOptions } from '../src/search.ts'

const root = resolve(import.meta.dirname, '../..')
/** Files that pages link to and that are no pages: they go along as text. */
const linked = new Set<string>()
const icon = encodeURIComponent(readFileSync(join(root, 'packages/page/web/icon.svg'), 'utf8'))

/** The pages of a part, as navigations have them. */
const itemsOf = (title: string) =>
  Object.entries(parts.find((one) => one.title === title)?.pages ?? {}).map(([text, path]) => ({
    text,
    link: linkTo(path),
  }))

const linkTo = (path: string) => `/${placeOf(path).replace(/(?:index)?\.md$/, '')}`

export default defineConfig({
  title: 'Weir',
  description: 'Decides, records, meters and alerts on API usage',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${icon}` }]],
  // Pages of the whole repository, each where it is read on GitHub too.
  srcDir: '..',
  outDir: '../.weir/docs',
  srcExclude: ['packages/!(client)/**', 'services/**', 'infra/!(helm)/**', 'lua/**'],
  rewrites: (page) => placeOf(page),
  markdown: {
    anchor: { slugify: anchorOf },
    attrs: { disable: true },
    config(md) {
      indexNames(md, root)
      listOperations(md)
      rewriteLinks(md, root, linked)
    },
  },
  themeConfig: {
    logo: { src: `data:image/svg+xml,${icon}`, alt: '' },
    nav: [
      { text: 'Start', link: '/first-ten-minutes' },
      { text: 'By role', items: itemsOf('By role') },
      { text: 'Limits', link: '/policy' },
      { text: 'Usage', link: '/usage' },
      { text: 'Run it', link: '/operating' },
      { text: 'API', items: itemsOf('API reference') },
    ],
    sidebar: parts.map(({ title }) => ({ text: title, items: itemsOf(title) })),
    outline: 'deep',
    search: { provider: 'local', options: { miniSearch: { searchOptions } } },
  },
  // Pages rendered for their first sight: with Vue in them, which only VitePress depends on.
  vite: { ssr: { noExternal: ['vue'] } },
  async buildEnd({ outDir }) {
    for (const path of linked) {
      const to = join(outDir, textPlace(path))
      await mkdir(dirname(to), { recursive: true })
      await copyFile(join(root, path), to)
    }
  },
})
