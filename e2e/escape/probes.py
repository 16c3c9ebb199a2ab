"""Tries to get out of where it runs, in every way that a cell can try from inside.

Each probe runs in a process of its own and ends with a verdict: "refused" with what it was told, "contained" with what it
got instead, or "ESCAPED". What raises OSError was refused. run() writes a line of JSON for each into verdicts.jsonl.
"""

import ctypes
import errno
import json
import os
import platform
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

PROBES = []
LIBC = ctypes.CDLL(None, use_errno=True)
WORKSPACE = os.getcwd()

X86 = dict(ptrace=101, syslog=103, personality=135, pivot_root=155, adjtimex=159, acct=163, settimeofday=164, mount=165, umount2=166,
           swapon=167, reboot=169, sethostname=170, iopl=172, init_module=175, delete_module=176, clock_settime=227, kexec_load=246,
           add_key=248, request_key=249, keyctl=250, unshare=272, perf_event_open=298, fanotify_init=300, open_by_handle_at=304,
           setns=308, process_vm_readv=310, process_vm_writev=311, finit_module=313, bpf=321, userfaultfd=323)
ARM = dict(umount2=39, mount=40, pivot_root=41, acct=89, personality=92, unshare=97, kexec_load=104, init_module=105, delete_module=106,
           clock_settime=112, syslog=116, ptrace=117, reboot=142, sethostname=161, settimeofday=170, adjtimex=171, add_key=217,
           request_key=218, keyctl=219, swapon=224, perf_event_open=241, fanotify_init=262, open_by_handle_at=265, setns=268,
           process_vm_readv=270, process_vm_writev=271, finit_module=273, bpf=280, userfaultfd=282)
BOTH = dict(pidfd_open=434, pidfd_getfd=438, clone3=435, io_uring_setup=425, open_tree=428, move_mount=429, fsopen=430, mount_setattr=442)
NUMBERS = (X86 if platform.machine() == "x86_64" else ARM) | BOTH


class Escaped(Exception):
    """What must not be possible was."""


class Contained(Exception):
    """It worked, and helps nobody."""


def probe(group, what):
    def add(f):
        PROBES.append((group, what, f))
        return f
    return add


def call(name, *args):
    """Makes a system call by its number, past whatever the C library would say to it."""
    ctypes.set_errno(0)
    got = LIBC.syscall(NUMBERS[name], *args)
    if got == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return got


def path(text):
    return ctypes.c_char_p(text.encode())


# Mounts and namespaces

@probe("mounts", "mount a tmpfs")
def _():
    call("mount", path("none"), path("/tmp"), path("tmpfs"), 0, None)
    raise Escaped("mounted")


@probe("mounts", "make the root writable again")
def _():
    call("mount", None, path("/"), None, 32, None)  # MS_REMOUNT
    raise Escaped("remounted")


@probe("mounts", "bind a folder over another")
def _():
    call("mount", path("/tmp"), path("/usr"), None, 4096, None)
    raise Escaped("bound")


@probe("mounts", "unmount /proc")
def _():
    call("umount2", path("/proc"), 2)
    raise Escaped("unmounted")


@probe("mounts", "the newer calls: fsopen, open_tree, mount_setattr")
def _():
    told = []
    for name, args in {"fsopen": (path("tmpfs"), 0), "open_tree": (-100, path("/"), 1), "mount_setattr": (-100, path("/"), 0, bytes(32), 32)}.items():
        try:
            call(name, *args)
        except OSError as e:
            told.append(f"{name}: {errno.errorcode[e.errno]}")
        else:
            raise Escaped(name)
    if any(not t.endswith(("EPERM", "ENOSYS", "EACCES")) for t in told):
        raise Escaped(", ".join(told))
    raise PermissionError(errno.EPERM, ", ".join(told))


@probe("mounts", "chroot, pivot_root")
def _():
    try:
        call("pivot_root", path("/tmp"), path("/tmp"))
        raise Escaped("pivot_root")
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.ENOSYS):
            raise Escaped(f"pivot_root: {e}")
    os.chroot("/tmp")
    raise Escaped("chroot")


@probe("namespaces", "a user namespace of its own, root inside")
def _():
    call("unshare", 0x10000000)
    raise Escaped("unshare(CLONE_NEWUSER)")


@probe("namespaces", "a mount namespace of its own")
def _():
    call("unshare", 0x00020000)
    raise Escaped("unshare(CLONE_NEWNS)")


@probe("namespaces", "a user namespace by clone3")
def _():
    args = struct.pack("<11Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    pid = call("clone3", args, len(args))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    raise Escaped("clone3(CLONE_NEWUSER)")


@probe("namespaces", "enter those of pid 1")
def _():
    for name in ("mnt", "net", "user", "pid"):
        fd = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
        try:
            call("setns", fd, 0)
        finally:
            os.close(fd)
        if name != "pid":
            raise Escaped(f"setns({name})")
    raise Escaped("setns(pid)")


# The kernel's own files

def write(name, text):
    """Opens as a program would that wants to write. Nothing is written unless that is allowed."""
    with open(name, "w") as f:
        f.write(text)
    raise Escaped(f"{name} was written")


for name, text in {
    "/proc/sys/kernel/core_pattern": "|/workspace/x", "/proc/sys/kernel/hostname": "x", "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/net/ipv4/ip_forward": "1", "/proc/sysrq-trigger": "h", "/proc/sys/kernel/modprobe": "/workspace/x",
    "/sys/kernel/mm/transparent_hugepage/enabled": "never", "/sys/power/state": "x", "/sys/kernel/uevent_helper": "/workspace/x",
    "/proc/self/oom_score_adj": "-1000", "/proc/1/oom_score_adj": "1000", "/proc/1/comm": "x", "/proc/irq/default_smp_affinity": "1",
}.items():
    probe("/proc and /sys", "write " + name)(lambda name=name, text=text: write(name, text))


@probe("/proc and /sys", "raise its own cgroup's limits")
def _():
    tried = 0
    for folder, _, files in os.walk("/sys/fs/cgroup"):
        for name in ("memory.max", "pids.max", "cpu.max", "cgroup.procs", "memory.limit_in_bytes", "release_agent", "notify_on_release"):
            if name not in files:
                continue
            tried += 1
            try:
                with open(os.path.join(folder, name), "w") as f:
                    f.write("max")
            except OSError:
                continue
            raise Escaped(os.path.join(folder, name))
    raise PermissionError(errno.EACCES, f"none of {tried} files can be written")


@probe("/proc and /sys", "read the memory of the host's kernel")
def _():
    for name in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/proc/kallsyms"):
        try:
            with open(name, "rb") as f:
                text = f.read(64)
        except OSError:
            continue
        if text and not text.startswith(b"0000000000000000"):
            raise Escaped(name)
    raise PermissionError(errno.EACCES, "none of it is there, or it is blank")


@probe("/proc and /sys", "read the host's log")
def _():
    call("syslog", 3, ctypes.create_string_buffer(4096), 4096)
    raise Escaped("dmesg")


# The network

def tcp(host, port, timeout=2):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(timeout)
        s.connect((host, port))
    raise Escaped(f"connected to {host}:{port}")


for host, port in [("169.254.169.254", 80), ("fd00:ec2::254", 80), ("100.100.100.200", 80), ("168.63.129.16", 80)]:
    probe("network", f"cloud metadata at {host}")(lambda host=host, port=port: tcp(host, port))


@probe("network", "the host: gateways of its bridges, its own address, the server")
def _():
    told = set()
    port = int(os.environ.get("PROBE_SERVER_PORT", PORT))
    for host in ("127.0.0.1", "172.17.0.1", "172.18.0.1", "10.88.0.1", "10.0.2.2", "192.168.0.1", "10.0.0.1", "::1"):
        for p in {port, 22, 2375, 80}:
            try:
                tcp(host, p, timeout=1)
            except OSError as e:
                told.add(errno.errorcode.get(e.errno, type(e).__name__))
    raise OSError(errno.ENETUNREACH, ", ".join(sorted(told)))


@probe("network", "names are not resolved")
def _():
    raise Escaped(str(socket.getaddrinfo("example.com", 80)))


@probe("network", "there is a loopback device and no other")
def _():
    names = [n for _, n in socket.if_nameindex()]
    if set(names) - {"lo"}:
        with open("/proc/net/route") as f:
            if len(f.read().splitlines()) > 1:
                raise Escaped(", ".join(names))
    raise Contained(", ".join(names))


for family, kind, what in [(socket.AF_INET, socket.SOCK_RAW, "a raw socket"), (socket.AF_PACKET, socket.SOCK_RAW, "a packet socket"),
                           (40, socket.SOCK_STREAM, "a socket to the hypervisor"), (38, socket.SOCK_SEQPACKET, "a socket to the kernel's ciphers"),
                           (socket.AF_BLUETOOTH if hasattr(socket, "AF_BLUETOOTH") else 31, socket.SOCK_RAW, "a Bluetooth socket"),
                           (29, socket.SOCK_RAW, "a CAN socket"), (44, socket.SOCK_RAW, "an XDP socket")]:
    def _(family=family, kind=kind, what=what):
        socket.socket(family, kind, 1 if family == socket.AF_INET else 0).close()
        if family in (40, 38):
            raise Contained("it can be made; nothing answers")
        raise Escaped(what)
    probe("network", "make " + what)(_)


# Engines, other sessions, the shim

@probe("neighbours", "the engine's socket")
def _():
    told = []
    for name in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket",
                 "/run/systemd/private", "/tmp/.X11-unix/X0"):
        if os.path.exists(name):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(name)
            raise Escaped(name)
    with open("/proc/net/unix") as f:
        told = [line.split()[-1] for line in f if "@" in line or "docker" in line or "podman" in line]
    for name in told:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect("\0" + name[1:] if name.startswith("@") else name)
        except OSError:
            continue
        raise Escaped(name)
    raise FileNotFoundError(errno.ENOENT, "there is none")


@probe("neighbours", "processes of others")
def _():
    mine = os.getuid()
    others = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                words = f.read().split("\0")
            if os.stat(f"/proc/{pid}").st_uid != mine and pid != "1":
                others.append(" ".join(words))
        except OSError:
            continue
    if others:
        raise Escaped("; ".join(others))
    raise Contained("only its own and the shim")


@probe("neighbours", "workspaces, keys and sockets of others")
def _():
    found = []
    for top in ("/workspace", "/run", "/var", "/home", "/root", "/tmp", "/mnt", "/srv", "/opt"):
        for folder, folders, files in os.walk(top, onerror=lambda e: None):
            for name in files:
                full = os.path.join(folder, name)
                if name in ("cellblock.db", "dev_private_key.pem", "dev_token.txt", "audit.jsonl", "secret-of-another.txt"):
                    found.append(full)
    if found:
        raise Escaped(", ".join(found))
    raise FileNotFoundError(errno.ENOENT, "nothing of theirs is mounted")


@probe("shim", "kill it")
def _():
    for n in set(range(1, signal.NSIG)) - {signal.SIGTERM}:  # which ends the kernel politely, as an engine does
        try:
            os.kill(1, n)
        except OSError:
            pass
    time.sleep(.3)
    with open("/proc/1/stat") as f:
        state = f.read().rsplit(")", 1)[1].split()[0]
    if state in "TZX":
        raise Escaped(f"its state is {state}")
    raise Contained("it hears no signal from its own namespace but SIGTERM, which ends its kernel")


@probe("shim", "trace it")
def _():
    call("ptrace", 16, 1, None, None)
    raise Escaped("attached")


@probe("shim", "read its memory")
def _():
    with open("/proc/1/mem", "rb") as f:
        f.seek(0x400000)
        f.read(16)
    raise Escaped("read")


@probe("shim", "read its memory by process_vm_readv")
def _():
    buf = ctypes.create_string_buffer(16)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buf), 16)
    remote = (ctypes.c_void_p * 2)(0x400000, 16)
    call("process_vm_readv", 1, local, 1, remote, 1, 0)
    raise Escaped("read")


@probe("shim", "take its descriptors")
def _():
    try:
        os.listdir("/proc/1/fd")
    except PermissionError:
        pass
    else:
        raise Escaped("/proc/1/fd")
    call("pidfd_getfd", call("pidfd_open", 1, 0), 0, 0)
    raise Escaped("pidfd_getfd")


@probe("shim", "read its environment")
def _():
    with open("/proc/1/environ", "rb") as f:
        f.read()
    raise Escaped("read")


@probe("shim", "overwrite its binary")
def _():
    with open("/proc/1/exe", "r+b"):
        raise Escaped("opened")


@probe("shim", "speak on its stream")
def _():
    hello = json.dumps({"version": 1}).encode()
    tried = 0
    for folder, _, files in os.walk("/", onerror=lambda e: None):
        if folder.startswith(("/proc", "/sys", "/usr")):
            continue
        for name in files:
            full = os.path.join(folder, name)
            if not stat.S_ISSOCK(os.lstat(full).st_mode):
                continue
            tried += 1
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(1)
                try:
                    s.connect(full)
                    s.sendall(struct.pack(">IB", len(hello) + 1, 1) + hello)
                    if b"kernel_id" in s.recv(4096):
                        raise Escaped(f"{full} answers")
                except OSError:
                    continue
    raise Contained(f"none of {tried} sockets gives it: the others are its own kernel's")


@probe("shim", "change the connection file")
def _():
    names = [a for a in open("/proc/%d/cmdline" % KERNEL).read().split("\0") if a.endswith(".json")]
    if not names:
        raise Contained("it is not named in the kernel's arguments")
    before = open(names[0]).read()
    try:
        with open(names[0], "w") as f:
            f.write(before)
    except OSError:
        raise
    raise Contained("it is the kernel's own, and read once")


# Privileges

@probe("privileges", "become root")
def _():
    try:
        os.setuid(0)
    except OSError as e:
        raise PermissionError(errno.EPERM, errno.errorcode[e.errno])  # EINVAL where there is no root in the namespace
    raise Escaped(str(os.getuid()))


@probe("privileges", "a setuid program of its own")
def _():
    name = os.path.join(WORKSPACE, "probe-su")
    with open(name, "wb") as f:
        f.write(open("/bin/true", "rb").read())
    os.chmod(name, 0o6755)
    try:
        os.chown(name, 0, 0)
        raise Escaped("chown to root")
    except OSError:
        pass
    finally:
        os.remove(name)
    for name in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/newgrp"):
        if os.path.exists(name) and subprocess.run([name, "--version"], capture_output=True, timeout=10).returncode == 0:
            with open("/proc/self/status") as f:
                if "NoNewPrivs:\t1" not in f.read():
                    raise Escaped(name + " may gain privileges")
    raise Contained("setuid gains nothing here: no_new_privs")


@probe("privileges", "capabilities")
def _():
    with open("/proc/self/status") as f:
        caps = {k: int(v, 16) for k, v in (line.split(":\t") for line in f if line.startswith("Cap"))}
    if any(caps.values()):
        raise Escaped(str({k: hex(v) for k, v in caps.items()}))
    raise Contained("none, not even to gain")


@probe("privileges", "device nodes")
def _():
    os.mknod(os.path.join(WORKSPACE, "probe-mem"), stat.S_IFCHR | 0o666, os.makedev(1, 1))
    with open(os.path.join(WORKSPACE, "probe-mem"), "rb"):
        raise Escaped("opened")


@probe("privileges", "devices of the host")
def _():
    found = []
    for name in os.listdir("/dev"):
        full = "/dev/" + name
        mode = os.lstat(full).st_mode
        if stat.S_ISBLK(mode):
            found.append(full)
        elif stat.S_ISCHR(mode) and name not in ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"):
            try:
                os.close(os.open(full, os.O_RDWR | os.O_NONBLOCK))
            except OSError:
                continue
            found.append(full)
    if found:
        raise Escaped(", ".join(found))
    raise Contained("null, zero, full, random, tty")


for name, args in {
    "add_key": (path("user"), path("probe"), path("x"), 1, -3), "keyctl": (0, -3, 1), "request_key": (path("user"), path("probe"), None, -3),
    "init_module": (b"x", 1, path("")), "finit_module": (0, path(""), 0), "delete_module": (path("loop"), 0), "kexec_load": (0, 0, None, 0),
    "bpf": (0, struct.pack("<IIIII", 1, 4, 4, 1, 0) + bytes(100), 120), "perf_event_open": (struct.pack("<IIQ", 1, 112, 0) + bytes(96), 0, -1, -1, 0),
    "userfaultfd": (0,), "io_uring_setup": (1, bytes(120)), "fanotify_init": (0, 0), "open_by_handle_at": (0, bytes(8) + bytes(8), 0),
    "reboot": (0xfee1dead & 0x7fffffff, 672274793, 0, None), "settimeofday": (struct.pack("<qq", int(time.time()), 0), None),
    "clock_settime": (0, struct.pack("<qq", int(time.time()), 0)), "adjtimex": (struct.pack("<I", 1) + bytes(204),), "sethostname": (path("x"), 1),
    "swapon": (path("/tmp/x"), 0), "acct": (path("/tmp/x"),), "iopl": (3,),
}.items():
    if name in NUMBERS:
        def _(name=name, args=args):
            got = call(name, *args)
            if name == "adjtimex":
                raise Escaped("the clock was set")
            raise Escaped(f"returned {got}")
        probe("system calls", name)(_)


# Files

@probe("files", "write outside the workspace")
def _():
    for name in ("/etc/passwd", "/usr/bin/python3", "/x", "/lib/x", "/bin/x", "/etc/ld.so.preload", "/usr/lib/x", "/opt/x", "/var/x", "/root/x"):
        try:
            with open(name, "a"):
                raise Escaped(name)
        except OSError:
            continue
    raise OSError(errno.EROFS, "nothing there can be written")


@probe("files", "run a program from /tmp or home")
def _():
    ran = []
    for folder in ("/tmp", os.path.expanduser("~"), "/dev/shm"):
        name = os.path.join(folder, "probe-x")
        try:
            with open(name, "wb") as f:
                f.write(open("/bin/true", "rb").read())
            os.chmod(name, 0o755)
            subprocess.run([name], check=True)
            ran.append(folder)
        except OSError:
            continue
    if ran:
        raise Escaped(", ".join(ran))
    raise PermissionError(errno.EACCES, "noexec")


@probe("files", "hard links to files of the host")
def _():
    for name in ("/etc/passwd", "/usr/bin/env", "/proc/1/exe", "/etc/hostname"):
        try:
            os.link(name, os.path.join(WORKSPACE, "probe-link"))
        except OSError:
            continue
        raise Escaped(name)
    raise OSError(errno.EXDEV, "they are on other mounts")


@probe("files", "secrets that are readable")
def _():
    for name in ("/etc/shadow", "/etc/ssh/ssh_host_rsa_key", "/root/.ssh/id_rsa", "/etc/sudoers", "/var/lib/cellblock"):
        try:
            os.listdir(name) if os.path.isdir(name) else open(name).close()
        except OSError:
            continue
        raise Escaped(name)
    raise PermissionError(errno.EACCES, "none can be read")


def verdict(f, out):
    signal.alarm(25)
    try:
        f()
        got = ("ESCAPED", "it ended without a verdict")
    except Escaped as e:
        got = ("ESCAPED", str(e))
    except Contained as e:
        got = ("contained", str(e))
    except OSError as e:
        code = errno.errorcode.get(e.errno, "")
        got = ("refused", e.strerror if code and e.strerror and code in (e.strerror or "") else f"{code or type(e).__name__} {e.strerror or e}".strip())
        if e.errno in (errno.EFAULT, errno.EINVAL):
            got = ("REACHED", got[1])
    except Exception as e:  # a probe that is broken proves nothing
        got = ("BROKEN", repr(e))
    os.write(out, json.dumps(got).encode())
    os._exit(0)


def attempt(f):
    """Makes a probe in a process of its own, and returns its verdict with the detail."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        verdict(f, w)
    os.close(w)
    text = b""
    deadline = time.monotonic() + 30
    while select.select([r], [], [], max(0, deadline - time.monotonic()))[0]:
        chunk = os.read(r, 65536)
        if not chunk:
            break
        text += chunk
    os.close(r)
    _, status = os.waitpid(pid, 0)
    if text:
        return json.loads(text)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        return "refused", "killed by the filter of system calls"
    return "BROKEN", f"the probe ended with status {status}"


def run():
    with open("verdicts.jsonl", "w") as out:
        for group, what, f in PROBES:
            got, detail = attempt(f)
            print(json.dumps({"group": group, "what": what, "verdict": got, "detail": detail[:200]}), file=out, flush=True)
    print("all probes were made")
