import type { PresetName } from '../meter.ts'
import { anthropic } from './anthropic.ts'
import { mcp } from './mcp.ts'
import { openai } from './openai.ts'
import type { Preset } from './preset.ts'

/** By name. */
export const presets: Readonly<Record<PresetName, Preset>> = { openai, anthropic, mcp }
