"""Servers on this machine for stores: S3 by moto, SFTP by the system's OpenSSH. Where one is missing, its tests skip."""

import getpass
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest


@pytest.fixture
def bucket(monkeypatch):
    """The URL of a bucket on an S3 server of its own; processes that a test starts find it, too."""
    s3fs = pytest.importorskip("s3fs", reason='S3 needs: pip install s3fs "moto[server]"')
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()  # its buckets are the process's
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """The URL of an SFTP server of its own, with a key in a home of its own, but for the folder in it."""
    pytest.importorskip("paramiko", reason="SFTP needs: pip install paramiko")
    daemon = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if daemon is None:
        pytest.skip("SFTP needs OpenSSH's server, sshd")
    if getpass.getuser() == "root" and not Path("/run/sshd").is_dir():
        pytest.skip("sshd started by root needs the folder /run/sshd")
    from fsspec.implementations.sftp import SFTPFileSystem

    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    for name in (".ssh/id_ed25519", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": home / "host", "PidFile": "none", "StrictModes": "no",
        "AuthorizedKeysFile": home / ".ssh/id_ed25519.pub", "Subsystem": "sftp internal-sftp",
    }  # fmt: skip
    (home / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    server = subprocess.Popen([daemon, "-D", "-e", "-f", home / "sshd_config"], stderr=(home / "log").open("w"))
    end = time.monotonic() + 10
    while socket.socket().connect_ex(("127.0.0.1", port)):
        assert server.poll() is None and time.monotonic() < end, (home / "log").read_text()
        time.sleep(0.05)
    yield f"sftp://{getpass.getuser()}@127.0.0.1:{port}"
    SFTPFileSystem.clear_instance_cache()
    server.kill()
    server.wait()


@pytest.fixture
def place(request, tmp_path):
    """Protocol → the URL of a place for stores, on this disk, in this process, or on a server."""

    def url(protocol):
        if protocol == "s3":
            return request.getfixturevalue("bucket")
        return f"{request.getfixturevalue('ssh') if protocol == 'sftp' else f'{protocol}://'}{tmp_path}"

    return url


@pytest.fixture(params=["file", "s3", "sftp"])
def any_url(request, place, tmp_path):
    """Of a store on a disk, and on servers."""
    (tmp_path / "disk").mkdir(exist_ok=True)
    return f"{place(request.param)}/disk/store"
