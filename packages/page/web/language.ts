// A browser of a machine without a language names one that no formatter takes (`en-US@posix`), and uPlot asks for it
// before anything else runs.
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' })
}
