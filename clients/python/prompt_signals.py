"""Records feedback signals on prompts, and reads what each change did to them. Only the standard library is needed.

    from prompt_signals import Client

    client = Client("https://signals.example.com", "psk_…")
    client.record("pmt_…", "positive", commit="45c48cce2e2d…", metadata={"session": "a81c"})
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Optional

__all__ = ["Client", "PromptSignalsError", "assign"]

Json = Dict[str, Any]

# Longer waits are left to the caller.
_LONGEST_WAIT = 10.0
# In timeouts: an export that looks for a rare value sends nothing meanwhile.
_LONGEST_SILENCE = 6

_SIGNAL_FIELDS = {"value", "metadata", "commit", "subject", "created_at", "idempotency_key"}


class PromptSignalsError(Exception):
    """`status` is 0 when there was no answer; `code` is then `network_error` or `timeout`."""

    def __init__(self, message: str, status: int, code: str, fields: Optional[Json] = None, retry_after: float = 0):
        # All of them: a pool of processes sends an error as its arguments, and hangs if one is missing.
        super().__init__(message, status, code, fields, retry_after)
        fields = fields or {}
        self.status = status
        self.code = code
        self.request_id: Optional[str] = fields.get("request_id")
        self.details: List[Json] = fields.get("details") or []
        #: Which limit was reached, and when there is room again.
        self.limited_by: Optional[str] = fields.get("limited_by")
        self.resets_at: Optional[str] = fields.get("resets_at")
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.args[0]

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later. A new month is too late."""
        if self.status == 429:
            return not (self.limited_by or "").endswith("month")
        return self.status in (0, 408) or self.status >= 500


class Client:
    """Every request may be repeated: it is sent again, up to `retries` times, while the failure is temporary."""

    def __init__(self, url: str, key: str, timeout: float = 10.0, retries: int = 3):
        self._root = url.rstrip("/") + "/api/v1"
        self._key = key
        self._timeout = timeout
        self._retries = retries
        # Never by way of a redirect: it would carry the key to another place.
        self._opener = urllib.request.build_opener(_NoRedirect)

    # Signals

    def record(
        self,
        prompt: str,
        value: str,
        metadata: Optional[Json] = None,
        commit: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        subject: Optional[str] = None,
    ) -> Json:
        """Records a signal, `positive` or `negative`, once, however often the request must be sent. The last signal with a
        `subject`, such as the id of an answer, replaces the one before it."""
        body = _given({"value": value, "subject": subject, "metadata": _with_commit(metadata, commit)})
        return self._write("POST", _path(prompt, "signals"), body, idempotency_key or uuid.uuid4().hex)

    def record_many(self, prompt: str, signals: Iterable[Json]) -> List[Json]:
        """Records 1 to 1,000 signals: dicts with `value`, and `metadata`, `commit`, `subject`, `created_at` and
        `idempotency_key` if wanted. There is a result for each, in their order."""
        items = []
        for signal in signals:
            for name in signal.keys() - _SIGNAL_FIELDS:
                raise TypeError(f"A signal has no {name}.")
            item = {**signal, "idempotency_key": signal.get("idempotency_key") or uuid.uuid4().hex}
            item["metadata"] = _with_commit(item.get("metadata"), item.pop("commit", None))
            items.append(_given(item))
        return self._write("POST", _path(prompt, "signals/batch"), {"signals": items})

    def withdraw(self, prompt: str, subject: str) -> bool:
        """Withdraws the signal with this subject. False if there is none, or if an attempt whose answer was lost withdrew it."""
        try:
            self._read("DELETE", _path(prompt, "signals") + _query({"subject": subject}))
        except PromptSignalsError as error:
            if error.code == "not_found":
                return False
            raise
        return True

    def signals(self, prompt: str, **filters: Any) -> Iterator[Json]:
        """The signals of a prompt, newest first. A filter on metadata is `**{"metadata.model": "gpt-5"}`."""
        return self._by_cursor(_path(prompt, "signals"), filters)

    def export(self, prompt: Optional[str] = None, **filters: Any) -> Iterator[Json]:
        """Every signal of a prompt, or of the organisation. A connection that breaks is resumed."""
        path = "/signals/export" if prompt is None else _path(prompt, "signals/export")
        after = filters.pop("after", None)
        while True:
            started_after = after
            try:
                with self._send("GET", path + _query({**filters, "after": after})) as response:
                    for line in response:
                        # The last line of a broken connection has no end.
                        if not line.endswith(b"\n"):
                            raise http.client.IncompleteRead(line)
                        signal = json.loads(line)
                        yield signal
                        after = signal["id"]
                return
            except (OSError, http.client.HTTPException) as error:
                # A connection that brings no line would break for ever.
                if after == started_after:
                    raise PromptSignalsError(f"The export was cut off: {error}", 0, "network_error") from error

    # What is known of a prompt

    def history(self, prompt: str, **filters: Any) -> Iterator[Json]:
        """The edit history of a prompt, newest first."""
        seen: set = set()
        page, pages = 1, 1
        while page <= pages:
            answer = self._get(_path(prompt, "history"), dict(**filters, limit=100, page=page))
            # Entries that are recorded meanwhile move others to later pages.
            yield from (entry for entry in answer["data"] if entry["id"] not in seen)
            seen.update(entry["id"] for entry in answer["data"])
            page, pages = page + 1, answer["pagination"]["total_pages"]

    def stats(self, prompt: str, **parameters: Any) -> Json:
        return self._get(_path(prompt, "stats"), parameters)

    def impact(self, prompt: str, **parameters: Any) -> Json:
        return self._get(_path(prompt, "impact"), parameters)

    def compare(self, prompt: str, base: str, head: str, **parameters: Any) -> Json:
        """Compares two commits that run side by side."""
        return self._get(_path(prompt, "compare"), {"base": base, "head": head, **parameters})["data"]

    def usage(self) -> Json:
        return self._get("/usage")["data"]

    # Administration. What is created or rotated is sent once: it may have happened though the answer was lost.

    def prompts(self, **filters: Any) -> Iterator[Json]:
        return self._by_cursor("/prompts", filters)

    def prompt(self, prompt: str) -> Json:
        return self._get(_at("prompts", prompt))["data"]

    def create_prompt(self, **fields: Any) -> Json:
        return self._write("POST", "/prompts", fields, attempts=1)

    def update_prompt(self, prompt: str, **fields: Any) -> Json:
        return self._write("PATCH", _at("prompts", prompt), fields)

    def keys(self) -> Iterator[Json]:
        return self._by_cursor("/keys", {})

    def key(self, key: str) -> Json:
        return self._get(_at("keys", key))["data"]

    def create_key(self, **fields: Any) -> Json:
        return self._write("POST", "/keys", fields, attempts=1)

    def update_key(self, key: str, **fields: Any) -> Json:
        return self._write("PATCH", _at("keys", key), fields)

    def rotate_key(self, key: str, **fields: Any) -> Json:
        return self._write("POST", _at("keys", key) + "/rotate", fields, attempts=1)

    def revoke_key(self, key: str) -> None:
        self._read("DELETE", _at("keys", key))

    # Requests

    def _get(self, path: str, query: Optional[Json] = None) -> Any:
        return self._read("GET", path + _query(query or {}))

    def _write(self, method: str, path: str, body: Json, idempotency_key: Optional[str] = None, attempts: int = 0) -> Any:
        return self._read(method, path, body, idempotency_key, attempts)["data"]

    def _by_cursor(self, path: str, query: Json) -> Iterator[Json]:
        cursor = None
        while True:
            answer = self._get(path, dict(**query, limit=100, cursor=cursor))
            yield from answer["data"]
            cursor = answer["pagination"]["next_cursor"]
            if cursor is None:
                return

    def _read(
        self,
        method: str,
        path: str,
        body: Optional[Json] = None,
        idempotency_key: Optional[str] = None,
        attempts: int = 0,
    ) -> Any:
        data = None if body is None else json.dumps(body, default=_to_json).encode()

        def read() -> Any:
            with self._attempt(method, path, data, idempotency_key, self._timeout) as response:
                return json.loads(response.read())

        return self._retry(read, attempts)

    def _send(self, method: str, path: str) -> Any:
        return self._retry(lambda: self._attempt(method, path, None, None, self._timeout * _LONGEST_SILENCE))

    def _retry(self, attempt: Any, attempts: int = 0) -> Any:
        attempts = attempts or self._retries + 1
        for failures in range(attempts):
            try:
                try:
                    return attempt()
                except urllib.error.HTTPError as error:
                    raise _error_of(error) from None
                except (socket.timeout, TimeoutError) as error:
                    raise PromptSignalsError("There was no answer in time.", 0, "timeout") from error
                # Not every ValueError: for a key that no header can hold, another attempt would not help.
                except (OSError, http.client.HTTPException, json.JSONDecodeError, UnicodeDecodeError) as error:
                    message = f"The service could not be reached: {error}"
                    raise PromptSignalsError(message, 0, "network_error") from error
            except PromptSignalsError as error:
                if failures + 1 == attempts or not error.is_temporary or error.retry_after > _LONGEST_WAIT:
                    raise
                # Grows with the attempts, and differs between clients that failed together.
                wait = max(error.retry_after, min(0.25 * 2**failures, _LONGEST_WAIT))
                time.sleep(wait * (1 + random.random() / 2))
        raise AssertionError("unreachable")

    def _attempt(
        self, method: str, path: str, data: Optional[bytes], idempotency_key: Optional[str], timeout: float
    ) -> Any:
        headers = {"Authorization": "Bearer " + self._key}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        request = urllib.request.Request(self._root + path, data, headers, method=method)
        return self._opener.open(request, timeout=timeout)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def assign(session: str, base: str, head: str, share: float = 0.5) -> str:
    """The commit that a session gets in a side-by-side comparison: always the same one, on every platform. A larger share
    moves sessions from the base to the head, and none back."""
    # FNV-1a. The commits are part of it, so that two experiments divide the sessions differently.
    value = 0x811C9DC5
    for byte in f"{base} {head} {session}".encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    # The last step of MurmurHash3: without it similar names fall on the same side.
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    value ^= value >> 16
    return head if value / 2**32 < share else base


def _with_commit(metadata: Optional[Json], commit: Optional[str]) -> Optional[Json]:
    return metadata if commit is None else {**(metadata or {}), "commit_sha": commit}


def _at(collection: str, name: str) -> str:
    return f"/{collection}/{urllib.parse.quote(name, safe='')}"


def _path(prompt: str, rest: str) -> str:
    return f"{_at('prompts', prompt)}/{rest}"


def _query(parameters: Json) -> str:
    given = {name: _to_text(value) for name, value in _given(parameters).items()}
    return "?" + urllib.parse.urlencode(given) if given else ""


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _to_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_to_text(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, default=_to_json).strip('"')


def _to_json(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"A {type(value).__name__} cannot be sent: use text, numbers, booleans, None, lists and dicts.")


def _error_of(error: urllib.error.HTTPError) -> PromptSignalsError:
    # A proxy may answer in any form.
    try:
        fields = json.loads(error.read())["error"]
        details = [f'{detail["path"]} {detail["message"]}' for detail in fields.get("details") or []]
        message, code = " ".join([fields["message"], "; ".join(details)]).rstrip(), fields["code"]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        fields, message, code = {}, f"The service answered with status {error.code}.", "unknown"
    retry_after = error.headers.get("Retry-After") or ""
    return PromptSignalsError(message, error.code, code, fields, float(retry_after) if retry_after.isdigit() else 0)
