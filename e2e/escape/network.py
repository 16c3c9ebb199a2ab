# Tries what a profile's network must not lead to: by CONNECT, by a plain request and by SOCKS5. One line of JSON for each.
import json
import socket
import struct


def proxy():
    return socket.create_connection(("127.0.0.1", 3128), 60)


def bracketed(host):
    return f"[{host}]" if ":" in host else host


def by_connect(host, port):
    with proxy() as s:
        s.sendall(f"CONNECT {bracketed(host)}:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return s.recv(1000).decode(errors="replace").split("\r\n")[0]


def by_request(host, port):
    with proxy() as s:
        s.sendall(f"GET http://{bracketed(host)}:{port}/ HTTP/1.1\r\nHost: pypi.org\r\nConnection: close\r\n\r\n".encode())
        return s.recv(1000).decode(errors="replace").split("\r\n")[0]


def by_socks(host, port):
    with proxy() as s:
        s.sendall(b"\x05\x01\x00")
        s.recv(2)
        try:
            address = b"\x01" + socket.inet_pton(socket.AF_INET, host)
        except OSError:
            try:
                address = b"\x04" + socket.inet_pton(socket.AF_INET6, host)
            except OSError:
                address = b"\x03" + bytes([len(host)]) + host.encode()
        s.sendall(b"\x05\x01\x00" + address + struct.pack(">H", port))
        return "SOCKS reply " + str((s.recv(10) + b"\0\0")[1])


def verdict(said):
    words = said.split()
    if words[0] == "SOCKS":
        return "refused" if words[2] == "2" else "contained" if words[2] in "14" else "REACHED"
    # A name that nobody has, or that is none, leads nowhere.
    return "refused" if words[1] == "403" else "contained" if words[1] in ("400", "502") and "refused" not in said else "REACHED"


targets = [
    ("cloud metadata", "169.254.169.254", 80), ("cloud metadata", "fd00:ec2::254", 80), ("cloud metadata", "100.100.100.200", 80),
    ("cloud metadata", "168.63.129.16", 80), ("cloud metadata, mapped", "::ffff:169.254.169.254", 80),
    ("cloud metadata, NAT64", "64:ff9b::a9fe:a9fe", 80), ("cloud metadata, 6to4", "2002:a9fe:a9fe::1", 80),
    ("cloud metadata, by name", "metadata.google.internal", 80),
    ("the host's loopback", "127.0.0.1", PORT), ("the host's loopback", "127.1.2.3", PORT), ("the host's loopback", "::1", PORT),
    ("the host's loopback, mapped", "::ffff:127.0.0.1", PORT), ("the host's loopback, as no address", "0.0.0.0", PORT), ("the host's loopback, as no address", "::", PORT),
    ("the host's loopback, as a number", "2130706433", PORT), ("the host's loopback, short", "127.1", PORT), ("the host's loopback, by name", "localhost", PORT),
    ("the server", "127.0.0.1", SERVER), ("the server, by name", "localhost", SERVER),
    ("engines' bridges", "172.17.0.1", PORT), ("engines' bridges", "10.88.0.1", PORT), ("other kernels", "172.17.0.2", 3128), ("other kernels", "10.88.0.2", 3128),
    ("multicast", "239.255.255.250", 1900), ("broadcast", "255.255.255.255", 80),
] + [("the host's own address", host, PORT) for host in OWN]

for what, host, port in targets:
    for way in (by_connect, by_request, by_socks):
        try:
            said = way(host, port)
            found = verdict(said)
        except OSError as e:
            said, found = str(e), "ODD"
        print(json.dumps({"Group": "network by profile", "What": f"{what}: {host} port {port} {way.__name__.replace('_', ' ')}", "Verdict": found, "Detail": said}))
print("all probes were made")
