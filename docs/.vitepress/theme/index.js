/* The fonts of the reader's system: nothing to load, from here or elsewhere. */
export { default } from 'vitepress/theme-without-fonts'
