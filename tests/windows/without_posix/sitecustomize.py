"""Takes away what Windows has not. Python imports a module of this name before any program."""

import os
import signal
import sys

for module in ("fcntl", "grp", "pwd", "resource", "termios", "tty"):
    vars(sys)["modules"][module] = None  # whoever imports it gets an ImportError
for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "register_at_fork", "statvfs"):
    delattr(os, name)
for name in (
    "SIGHUP",
    "SIGALRM",
    "SIGUSR1",
    "SIGSTOP",
    "alarm",
    "pthread_kill",
    "pthread_sigmask",
    "setitimer",
):
    delattr(signal, name)
