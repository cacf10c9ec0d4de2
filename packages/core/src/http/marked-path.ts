import {
  brokenEscape,
  differentlyRead,
  isUtf8,
  withEscapes,
  withoutDots,
  withoutNeedlessEscapes,
} from './normalize-path.ts'

/** What some upstreams take for data in a path, and others for a delimiter. */
const patterns = { '%2F': /%2F/, ';': /;|%3B/, '//': /\/\// } as const
/** An escaped slash, a path parameter, an empty segment. */
export type PathMark = keyof typeof patterns
/** All of them. */
export const pathMarks = Object.keys(patterns) as readonly PathMark[]

/** A path with marks. */
export interface MarkedPath {
  readonly marks: readonly PathMark[]
  /** As the client wrote it, but for needless escapes. */
  readonly path: string
  /** What readers may make of it, each as `normalizePath` writes a path; the first is without parameters. */
  readonly readings: readonly string[]
}

/** Undefined for a path that is refused for other reasons, and for one with dot segments in any of its readings. */
export function readMarkedPath(raw: string): MarkedPath | undefined {
  if (brokenEscape.test(raw)) return undefined
  const path = withoutNeedlessEscapes(raw)
  const marks = pathMarks.filter((mark) => patterns[mark].test(path))
  if (marks.length === 0 || differentlyRead(path, marks) !== undefined || !isUtf8(path)) return undefined
  const plain = (text: string) => text.replaceAll(/(?:;|%3B)[^/]*/g, '')
  const split = (text: string) => text.replaceAll('%2F', '/')
  const written = [plain(path), path, split(plain(path)), plain(split(path)), split(path)]
  if (written.some((reading) => /\/\.{1,2}(?:\/|$)/.test(reading))) return undefined
  // What resolves it as a reference, as WHATWG's `URL` does, takes `//name` for a host.
  const texts = [...written, ...written.map((text) => text.replace(/^\/{2,}[^/]*/, ''))]
  const readings = new Set([...texts.map(withoutDots), ...texts.map(withEscapes)])
  return { marks, path: withEscapes(path), readings: [...readings] }
}
