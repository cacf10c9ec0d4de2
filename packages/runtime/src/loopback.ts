/** Whether a host, as an URL or a variable has it, is this machine itself. */
export const isLoopback = (host: string): boolean => /^(127\.[\d.]+|localhost|\[::1\]|::1)$/.test(host)
