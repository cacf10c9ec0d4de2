"""Runs a program in a pseudo terminal: argv is ROWS COLUMNS PROGRAM ARGUMENTS. Standard output is what it draws. Each line of
standard input is JSON: {"type": TEXT}, {"size": [ROWS, COLUMNS]}, or {}. Standard error answers with a line of JSON: first the
process id, after each {} and at the end whether the terminal's modes are those of the beginning. The exit code is the
program's, 128 and the number for a signal."""
import fcntl, json, os, pty, select, struct, sys, termios


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))


def say(**what):
    print(json.dumps(what), file=sys.stderr, flush=True)


rows, columns, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    resize(0, rows, columns)
    os.execvp(command[0], command)
say(pid=pid)
before = termios.tcgetattr(terminal)
waiting = b""
while True:
    ready, _, _ = select.select([terminal, 0], [], [])
    if terminal in ready:
        try:
            os.write(1, os.read(terminal, 65536))
        except OSError:  # it has ended, and so has everything that it started there
            break
    if 0 in ready:
        read = os.read(0, 65536)
        if not read:
            break
        *lines, waiting = (waiting + read).split(b"\n")
        for asked in map(json.loads, lines):
            if "type" in asked:
                os.write(terminal, asked["type"].encode())
            elif "size" in asked:
                resize(terminal, *asked["size"])
            else:
                say(same=termios.tcgetattr(terminal) == before)
same = termios.tcgetattr(terminal) == before
os.close(terminal)  # whoever is left in it gets a hangup
_, status = os.waitpid(pid, 0)
say(same=same)
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
