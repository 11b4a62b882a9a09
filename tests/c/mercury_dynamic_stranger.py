#!/usr/bin/env python3
"""Usage: mercury_dynamic_stranger.py ADDRESS_FILE SECRET_FILE BEGUN_FILE DONE_FILE

Troubles a server that listens for other jobs in every way that its door must bear: guests who
say nothing, rubbish, wrong proofs and recorded greetings, a thousand connections, and guests
who prove themselves and leave half-way. The protocol is written here once more, from its
description, with Python's own library alone. Makes the first file when the troubles have begun
and the second when each has been; then goes on with some until the door is closed. The
exit code is 0 if the server behaved.
"""

import hashlib
import hmac
import os
import socket
import struct
import sys
import time

MAGIC = b"ptlnrpc\x01"
WAIT = 60.0


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


class Server:
    """Where the server is, and what is known of it."""

    def __init__(self, address, secret):
        prefix, _, rest = address.strip().partition("://")
        self.place, _, token = rest.rpartition("/")
        assert prefix == "mpi+dynamic" and len(token) == 32, address
        host, _, port = self.place.rpartition(":")
        self.at = (host.strip("[]"), int(port))
        self.key = mac(bytes.fromhex(token), b"portolan rpc key 1", b"\x01", secret.rstrip())

    def reach(self):
        guest = socket.create_connection(self.at, WAIT)
        guest.settimeout(WAIT)
        return guest

    def prove(self, part, mine, theirs, more=b""):
        place = self.place.encode()
        said = struct.pack("<Q", len(place)) + place
        return mac(self.key, bytes([part]), mine, theirs, said, more)


def take(guest, count):
    """So many bytes, or fewer where the server closes."""
    got = b""
    try:
        while len(got) < count:
            more = guest.recv(count - len(got))
            if not more:
                break
            got += more
    except ConnectionError:
        pass
    return got


def hears(server, said):
    """All that the server says to a guest who says this."""
    with server.reach() as guest:
        try:
            guest.sendall(said)
            guest.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return take(guest, 100000)


def rubbish(server):
    for said in (b"", b"portolan", b"GET / HTTP/1.0\r\n\r\n", bytes(1000), MAGIC[:7] + b"\x07" + bytes(64)):
        told = hears(server, said)
        assert told == b"", f"rubbish was told {told!r}"


def wrong_proofs(server):
    nonce = os.urandom(32)
    for proof in (bytes(32), os.urandom(32), b"\xff" * 500, b"short"):
        told = hears(server, MAGIC + nonce + proof)
        assert len(told) <= 41 and told[40:] in (b"", b"\x02"), f"{told!r}"


def prove(server, guest):
    """A right greeting; what was said, and the server's nonce."""
    nonce = os.urandom(32)
    guest.sendall(MAGIC + nonce)
    challenge = take(guest, 40)
    if len(challenge) < 40:
        return None, None, None  # the server dropped this guest for another
    assert challenge[:8] == MAGIC, challenge
    proof = server.prove(1, nonce, challenge[8:])
    guest.sendall(proof)
    return MAGIC + nonce + proof, nonce, challenge[8:]


def welcomed(server):
    """A guest who was told of MPI's port, and its greeting."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        guest = server.reach()
        said, mine, theirs = prove(server, guest)
        verdict = take(guest, 1) if said else b""
        if verdict == b"\x01":
            (length,) = struct.unpack("<H", take(guest, 2))
            name, proof = take(guest, length), take(guest, 32)
            assert proof == server.prove(2, mine, theirs, name), "the server does not prove itself"
            return guest, said
        assert verdict in (b"", b"\x03"), f"a right proof is answered by {verdict!r}"
        guest.close()
        time.sleep(0.05)
    raise AssertionError("a right proof is not welcome")


def replays(server):
    guest, said = welcomed(server)
    guest.close()
    for _ in range(3):
        told = hears(server, said)
        assert told[40:] in (b"", b"\x02"), f"a recorded greeting is told {told!r}"


def leave_half_way(server):
    for last in (b"", b"C", b"CJ", b"x"):
        guest, _ = welcomed(server)
        guest.sendall(last)
        guest.close()
    for _ in range(3):  # leave after the proof, before the answer
        guest = server.reach()
        prove(server, guest)
        guest.close()


def thousand(server, silent):
    for n in range(1000):
        guest = server.reach()
        guest.sendall((b"", b"p", MAGIC, b"rubbish!")[n % 4])
        silent.append(guest)
        if len(silent) > 100:
            silent.pop(0).close()


def main(address, secret, begun, done):
    with open(address) as text, open(secret, "rb") as known:
        server = Server(text.read(), known.read())
    silent = [server.reach() for _ in range(20)]
    rubbish(server)
    open(begun, "w").close()
    wrong_proofs(server)
    replays(server)
    leave_half_way(server)
    thousand(server, silent)
    leave_half_way(server)
    open(done, "w").close()
    try:
        while True:
            silent.append(server.reach())
            silent.pop(0).close()
            rubbish(server)
            time.sleep(0.05)
    except OSError:
        pass  # the server no longer listens
    print("PASS mercury_dynamic_stranger")


main(*sys.argv[1:])
