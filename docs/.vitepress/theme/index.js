/* The fonts of the reader's system: nothing to load, from here or elsewhere. */
import theme from 'vitepress/theme-without-fonts'
import './brand.css' // after the theme, whose colours it replaces

export default theme
