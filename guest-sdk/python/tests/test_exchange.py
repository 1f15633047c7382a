"""Clients of the standard library against a connection that has no socket."""

import http.client
import unittest
from unittest.mock import patch
import urllib.error
import urllib.request
from typing import Any

from deedbox._exchange import Exchange, PlainAnswer, PlainRequest


class Clients(unittest.TestCase):
    def setUp(self) -> None:
        self.sent: list[PlainRequest] = []
        headers = [("x-a", b"1"), ("transfer-encoding", b"chunked")]
        self.answer: PlainAnswer | OSError = PlainAnswer(200, headers, b"body")
        test = self

        def send(request: PlainRequest) -> PlainAnswer:
            test.sent.append(request)
            if isinstance(test.answer, OSError):
                raise test.answer
            return test.answer

        def connect(connection: Any) -> None:
            authority = f"{connection.host}:{connection.port}"
            connection.sock = Exchange("http", authority, connection.timeout, send)

        patched = patch.object(http.client.HTTPConnection, "connect", connect)
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_request_arrives_whole_without_what_belongs_to_the_host(self) -> None:
        with urllib.request.urlopen(urllib.request.Request("http://p.test/a?b=1", data=b"xy"), timeout=2) as answer:
            self.assertEqual((answer.status, answer.read(), answer.headers["x-a"]), (200, b"body", "1"))
        sent = self.sent[0]
        self.assertEqual((sent.method, sent.authority, sent.path, sent.body), ("POST", "p.test:80", "/a?b=1", b"xy"))
        self.assertEqual(sent.timeout, 2)
        names = {name.lower() for name, _ in sent.headers}
        self.assertTrue(names.isdisjoint({"host", "connection"}), names)

    def test_a_body_in_pieces_is_put_together(self) -> None:
        connection = http.client.HTTPConnection("p.test")
        connection.request("PUT", "/", body=iter([b"ab", b"", b"cd" * 5000]), encode_chunked=True)
        self.assertEqual(connection.getresponse().read(), b"body")
        self.assertEqual(self.sent[0].body, b"ab" + b"cd" * 5000)

    def test_a_connection_is_used_again(self) -> None:
        connection = http.client.HTTPConnection("p.test")
        for i in range(3):
            connection.request("POST", f"/{i}", body=b"x")
            self.assertEqual(connection.getresponse().read(), b"body")
        self.assertEqual([sent.path for sent in self.sent], ["/0", "/1", "/2"])

    def test_an_answer_without_a_body_keeps_its_length(self) -> None:
        self.answer = PlainAnswer(200, [("content-length", b"5")], b"")
        request = urllib.request.Request("http://p.test/", method="HEAD")
        with urllib.request.urlopen(request) as answer:
            self.assertEqual((answer.read(), answer.headers["content-length"]), (b"", "5"))
        self.answer = PlainAnswer(299, [], b"")
        with urllib.request.urlopen("http://p.test/") as answer:
            self.assertEqual((answer.status, answer.read()), (299, b""))

    def test_errors_are_raised_where_a_socket_would(self) -> None:
        self.answer = ConnectionRefusedError("no")
        with self.assertRaisesRegex(urllib.error.URLError, "no"):
            urllib.request.urlopen("http://p.test/")
        self.answer = TimeoutError("timed out")
        with self.assertRaises(TimeoutError):
            urllib.request.urlopen("http://p.test/")
        self.assertEqual(len(self.sent), 2, "nothing is sent again")
