"""`heedful serve` behind proxies: which client address is trusted."""

from tests.support.serving import serving

BODY = {"q": "the dog", "source": "EN", "target": "fr-CA", "format": None, "api_key": None}


def statuses(server, addresses):
    return [
        server.client.post(
            "/detect", json=BODY, headers=[("X-Forwarded-For", part) for part in several]
        ).status_code
        for several in addresses
    ]


def file_address(server, client):
    """The address of a translated file that the server returns behind a proxy with TLS."""
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": client, "Host": "translate.example"}
    form = {"source": "en-GB", "target": "FR"}
    sent = {"file": ("a.txt", "the dog")}
    answer = server.client.post("/translate_file", data=form, files=sent, headers=told)
    return answer.json().get("translatedFileUrl", "http://")


def test_only_a_trusted_proxy_says_who_the_client_is(zygote, trained):
    limits = ["--per-minute", 1, "--trusted-proxies", "127.0.0.0/8,192.0.2.7"]
    with serving(zygote, trained, *limits) as server:
        asked = [["198.51.100.1"], ["198.51.100.2"], ["198.51.100.1"]]
        assert statuses(server, asked) == [200, 200, 429]
        # The right-most address that is no proxy: what stands before it the client wrote itself.
        asked = [["203.0.113.9, 198.51.100.1, 192.0.2.7"], ["203.0.113.8", "198.51.100.2"]]
        assert statuses(server, asked) == [429, 429]
        assert file_address(server, "198.51.100.3").startswith("https://translate.example/")


def test_where_no_proxy_is_trusted_no_header_counts(zygote, trained):
    with serving(zygote, trained, "--per-minute", 1) as server:
        assert statuses(server, [["198.51.100.1"], ["198.51.100.2"], []]) == [200, 429, 429]
        assert "https" not in file_address(server, "198.51.100.3")
