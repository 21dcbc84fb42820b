"""
A server that answers as Hugging Face's hub does, for the routes that huggingface_hub uses.

Large files are redirected to another host name, as to the hub's CDN, which must not see a token.
Downloads can be cut or altered, repositories can be gated or private, and uploads are stored.
"""

import base64
import hashlib
import json
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

READER, WRITER = "hf_reader", "hf_writer"
LARGE = (".safetensors", ".bin", ".spm", ".model")
_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"


class Repository:
    """The commits of one model."""

    def __init__(self, license="", gated=False, private=False):
        self.license, self.gated, self.private = license, gated, private
        self.branches, self.commits = {}, {}

    def add(self, files, branch="main"):
        """Commit some files on top of a branch; returns the commit."""
        whole = {**self.commits.get(self.branches.get(branch), {}), **files}
        whole = {name: content for name, content in whole.items() if content is not None}
        listing = "".join(f"{n} {hashlib.sha256(c).hexdigest()}" for n, c in sorted(whole.items()))
        commit = hashlib.sha1(f"{len(self.commits)}{branch}{listing}".encode()).hexdigest()
        self.commits[commit] = whole
        self.branches[branch] = commit
        return commit

    def find(self, revision):
        """The commit of a branch or commit."""
        return self.branches.get(revision) or (revision if revision in self.commits else None)


def is_large(name):
    return name.endswith(LARGE)


def blob_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(ThreadingHTTPServer):
    """The server; it listens while the block of `running` lasts."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _HubHandler)
        self.repositories, self.blobs = {}, {}
        self.requests, self.cuts, self.altered = [], {}, {}
        self.status, self.delay = 0, 0.0
        # A function of handler, method and path that answers some requests, and says so.
        self.lie = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, repo, files, branch="main", **facts):
        """Commit files to a repository, which is made if need be."""
        known = self.repositories.setdefault(repo, Repository(**facts))
        return known.add(files, branch)

    def add_folder(self, repo, folder, branch="main", **facts):
        """Commit the files of a folder."""
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        return self.add(repo, files, branch, **facts)

    def fetched(self, repo=""):
        """The names of files whose content was asked for, in order."""
        return [name for method, name in self.requests if method == "GET" and repo in name]

    def handle_error(self, request, client_address):
        """A client that was killed is not a failure of a test."""


@contextmanager
def running():
    """A running hub."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


def environment(hub, home, token=""):
    """The variables with which a process uses the hub and a cache of its own."""
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_TOKEN": token,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_CACHE": "",
        "TRANSFORMERS_OFFLINE": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


class _HubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Say nothing."""

    def do_HEAD(self):
        self._route("HEAD")

    def do_GET(self):
        self._route("GET")

    def do_POST(self):
        self._route("POST")

    def do_PUT(self):
        self._route("PUT")

    def _route(self, method):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else self._chunks()
        path = unquote(urlsplit(self.path).path)
        self.token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        time.sleep(self.server.delay)
        if self.server.status:
            return self._answer(self.server.status, {"error": "out of order"})
        if self.server.lie is not None and self.server.lie(self, method, path):
            return None
        for pattern, action in _ROUTES.items():
            if match := re.fullmatch(pattern, path):
                self.server.requests.append((method, path))
                return action(self, **match.groupdict())
        return self._answer(404, {"error": f"no route {path}"})

    def _chunks(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return b""
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(self, status, content, headers=()):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _repository(self, repo, revision=None):
        """The repository and the commit, or None after an answer of what is wrong."""
        known = self.server.repositories.get(repo)
        if known is None or (known.private and self.token not in (READER, WRITER)):
            # The hub does not tell strangers which private models there are.
            status = 404 if self.token else 401
            self._answer(status, {"error": "Repository Not Found"}, _code("RepoNotFound"))
            return None
        commit = known.find(revision or "main")
        if commit is None and revision is not None:
            self._answer(404, {"error": "no such revision"}, _code("RevisionNotFound"))
            return None
        return known, commit

    def info(self, repo, revision="main"):
        """Facts and files of a revision."""
        if (place := self._repository(repo, revision)) is None:
            return
        known, commit = place
        files = []
        for name, content in known.commits[commit].items():
            file = {"rfilename": name, "size": len(content), "blobId": blob_id(content)}
            if is_large(name):
                sha256 = hashlib.sha256(content).hexdigest()
                file["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 130}
            files.append(file)
        facts = {"id": repo, "modelId": repo, "sha": commit, "siblings": files, "tags": []}
        facts |= {"private": known.private, "gated": "manual" if known.gated else False}
        if known.license:
            facts["cardData"] = {"license": known.license}
        self._answer(200, facts)

    def resolve(self, repo, revision, file):
        """A file; a large one by a redirect to the other host."""
        if (place := self._repository(repo, revision)) is None:
            return
        known, commit = place
        if known.gated and self.token not in (READER, WRITER):
            self._answer(403, {"error": "gated"}, _code("GatedRepo"))
            return
        content = known.commits[commit].get(file)
        if content is None:
            self._answer(404, {"error": "no file"}, {**_code("EntryNotFound"), **_commit(commit)})
            return
        sha256 = hashlib.sha256(content).hexdigest()
        headers = _commit(commit)
        if not is_large(file):
            self._send(file, content, {**headers, "ETag": f'"{blob_id(content)}"'})
            return
        self.server.blobs[sha256] = (file, content)
        place = f"http://localhost:{self.server.server_port}/cdn/{sha256}"
        linked = {"X-Linked-ETag": f'"{sha256}"', "X-Linked-Size": str(len(content))}
        self._answer(302, b"", {**headers, **linked, "Location": place})

    def cdn(self, sha256):
        """The content of a large file, for everybody."""
        if self.headers.get("Authorization"):
            self._answer(400, {"error": "a token was sent to another host"})
            return
        file, content = self.server.blobs[sha256]
        self._send(file, content, {"ETag": f'"{sha256}"'})

    def _send(self, file, content, headers):
        """Send a file, or the rest of it, unless a fault is set for it."""
        if self.command == "GET" and self.server.altered.get(file, 0) > 0:
            self.server.altered[file] -= 1
            content = bytes(byte ^ 1 for byte in content)
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        first = int(match[1]) if match else 0
        rest = content[first:]
        if match:
            headers = {**headers, "Content-Range": f"bytes {first}-/{len(content)}"}
        if self.command != "GET" or self.server.cuts.get(file, 0) <= 0:
            self._answer(206 if match else 200, rest, headers)
            return
        self.server.cuts[file] -= 1
        self.send_response(206 if match else 200)
        for name, value in {**headers, "Content-Length": str(len(rest))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2])
        self.close_connection = True

    def create(self):
        """Make a repository."""
        wanted = json.loads(self.body)
        repo = f"{wanted['organization']}/{wanted['name']}"
        if self.token != WRITER:
            self._answer(403 if self.token else 401, {"error": "no right to create"})
        elif repo in self.server.repositories:
            self._answer(409, {"error": "exists", "url": f"{self.server.url}/{repo}"})
        else:
            private = wanted.get("private") or wanted.get("visibility") == "private"
            self.server.repositories[repo] = Repository(private=bool(private))
            self.server.repositories[repo].add({".gitattributes": b""})
            self._answer(200, {"url": f"{self.server.url}/{repo}"})

    def branch(self, repo, branch):
        """Make a branch that begins as the main one."""
        if (place := self._repository(repo)) is None:
            return
        known, commit = place
        if branch in known.branches:
            self._answer(409, {"error": "exists"})
            return
        known.branches[branch] = commit
        self._answer(200, {})

    def tree(self, repo, revision):
        """List the files of a revision."""
        if (place := self._repository(repo, revision)) is None:
            return
        known, commit = place
        listed = [
            {"type": "file", "path": name, "size": len(content), "oid": blob_id(content)}
            for name, content in known.commits[commit].items()
        ]
        self._answer(200, listed)

    def preupload(self, repo, revision):
        """Say which files are large."""
        if self._repository(repo, revision) is None:
            return
        files = [file["path"] for file in json.loads(self.body)["files"]]
        modes = ["lfs" if is_large(name) else "regular" for name in files]
        listed = [
            {"path": name, "uploadMode": mode, "shouldIgnore": False}
            for name, mode in zip(files, modes, strict=True)
        ]
        self._answer(200, {"files": listed})

    def batch(self, repo):
        """Say where large files are sent to."""
        if self._repository(repo) is None:
            return
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.server.url}/upload/{one['oid']}"}}}
            for one in json.loads(self.body)["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, sha256):
        """Store a large file."""
        if hashlib.sha256(self.body).hexdigest() != sha256:
            self._answer(400, {"error": "another digest"})
            return
        self.server.blobs[sha256] = ("", self.body)
        self._answer(200, {})

    def commit(self, repo, revision):
        """Commit what was uploaded."""
        if (place := self._repository(repo, revision)) is None:
            return
        files = {}
        for line in self.body.splitlines():
            part = json.loads(line)
            value = part["value"]
            if part["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif part["key"] == "lfsFile":
                files[value["path"]] = self.server.blobs[value["oid"]][1]
            elif part["key"] == "deletedFile":
                files[value["path"]] = None
        commit = place[0].add(files, revision)
        page = f"{self.server.url}/{repo}/commit/{commit}"
        self._answer(200, {"success": True, "commitOid": commit, "commitUrl": page})

    def validate(self):
        """Accept any model card."""
        self._answer(200, {"errors": [], "warnings": []})


def _code(code):
    return {"X-Error-Code": code, "X-Error-Message": code}


def _commit(commit):
    return {"X-Repo-Commit": commit}


_ROUTES = {
    rf"/api/models/{_REPO}/revision/(?P<revision>.+)": _HubHandler.info,
    rf"/api/models/{_REPO}": _HubHandler.info,
    rf"/api/models/{_REPO}/tree/(?P<revision>.+)": _HubHandler.tree,
    rf"/api/models/{_REPO}/branch/(?P<branch>.+)": _HubHandler.branch,
    rf"/api/models/{_REPO}/preupload/(?P<revision>.+)": _HubHandler.preupload,
    rf"/api/models/{_REPO}/commit/(?P<revision>.+)": _HubHandler.commit,
    r"/api/repos/create": _HubHandler.create,
    r"/api/validate-yaml": _HubHandler.validate,
    rf"/{_REPO}\.git/info/lfs/objects/batch": _HubHandler.batch,
    r"/upload/(?P<sha256>\w+)": _HubHandler.upload,
    r"/cdn/(?P<sha256>\w+)": _HubHandler.cdn,
    rf"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)": _HubHandler.resolve,
}
