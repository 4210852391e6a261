#!/usr/bin/python3
"""Send the journal's lines to the site's log centre: `ironburst-logs SETTINGS`.

The journal is the buffer: where it has been read to (a cursor in $STATE_DIRECTORY) moves on only when the centre has
taken the lines, so a centre that is away, or refuses, costs nothing until journald itself must delete. Each line has an
id, so one that is sent twice is there once. What looks like a secret doesn't leave the host.

SETTINGS is JSON: url (to which batches are posted, in the form of Elasticsearch's _bulk), index, user (with the file
`password` in $CREDENTIALS_DIRECTORY), ca, programs (patterns of names), template and days (whether this host keeps the
indices' mapping, and deletes old ones), relay (fields of journald by which the lines of `ironburst receive` are known),
journal (options of journalctl).
"""

import base64
import fnmatch
import hashlib
import http.client
import json
import os
import queue
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlsplit

FIELDS = ("MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "_COMM", "_PID", "_HOSTNAME", "_SYSTEMD_UNIT", "_UID")
FIELDS += ("_SOURCE_REALTIME_TIMESTAMP",)
RELAYED = ("NODE", "LEASE", "PROGRAM", "PID", "SEVERITY", "TIME", "ID")  # behind IRONBURST_
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
LINES, BYTES, LONGEST = 1000, 1_000_000, 32_000  # of a batch, and characters of a line
GATHER_S = 0.2  # lines that come together go together
RETRY_S = (0.5, 30.0)
SAID_S = 300.0  # the same trouble is told again
TIMEOUT_S = 30.0
STOP_S = 5.0  # for the last lines
TIDY_S = 3600.0
REDACTED = "[redacted]"
# A value in quotes ends with them, or with the line; another one only with the line, for nobody knows where
QUOTED = r"(?:(?:\"(?:\\.|[^\"\\])*(?:\"|$)|'(?:\\.|[^'\\])*(?:'|$))[^\s,;}\])\"']*)+"
VALUE = rf"(?:{QUOTED}|\S.*)"
NAMES = r"pass(?:word|wd|phrase)?|pw|secret|token|api[_-]?key|access[_-]?key|auth(?:orization|tok)|credentials?"
NAMES += r"|private[_-]?key|session[_-]?key|key[_-]?data|cookie|jwt|munge[_-]?key"
SECRETS = (
    (rf"(?i)((?<![a-z])[\w.-]*(?<![a-z])(?:{NAMES})(?:[_-]\w+)*\\?[\"']?\s*(?:[=:]|=>)\s*\\?){VALUE}", r"\1"),
    (rf"(?i)((?<!\S)--?[\w-]*(?:{NAMES})[\w-]*\s+){VALUE}", r"\1"),
    (r"(?i)(\b(?:bearer|basic|negotiate)\s+)[\w.~+/=-]{8,}", r"\1"),
    (r"(\w://[^\s/@:]*:)[^\s@]+(?=@)", r"\1"),
    (r"((?<!\S)(?:-u|--user)[ =]?[^\s:]+:).*", r"\1"),
    (r"(\bsshpass\s+-p\s*).*", r"\1"),
    (r"(?s)-----BEGIN [^-]*PRIVATE KEY-----.*?(?:-----END [^-]*-----|\Z)", ""),
    (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", ""),
    (r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?", ""),
    (r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|AGE-SECRET-KEY-)[\w-]{10,}", ""),
    (r"(hooks\.slack\.com/services/)\S+", r"\1"),
    (r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", ""),  # a bootstrap token of Kubernetes
)
PATTERNS = tuple((re.compile(pattern), before + REDACTED) for pattern, before in SECRETS)
TEMPLATE = {
    "settings": {"number_of_replicas": 0, "codec": "best_compression"},
    # nothing of a line makes fields
    "mappings": {
        "dynamic": False,
        "properties": {
            "@timestamp": {"type": "date_nanos"},
            **{name: {"type": "keyword"} for name in ("host", "program", "severity", "lease", "unit", "id")},
            "message": {"type": "text"},
        },
    },
}


class AwayError(Exception):
    """The centre didn't take it; the text is one sentence."""


def redacted(text):
    """Without what looks like a secret."""
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    return text


def text_of(value):
    """Of a field of journalctl's JSON: a text, bytes as numbers, or several of either."""
    if isinstance(value, list):
        if value and all(isinstance(each, int) for each in value):
            return bytes(value).decode(errors="replace")
        return text_of(value[0]) if value else ""
    return value if isinstance(value, str) else ""


def at(microseconds):
    """ISO 8601, of microseconds since 1970."""
    moment = datetime.fromtimestamp(int(microseconds) // 1_000_000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(microseconds) % 1_000_000:06d}Z"


def is_relayed(entry, relay):
    """Did `ironburst receive` write it? Its fields count then: they are the ledger's."""
    return bool(relay) and all(entry.get(name) == value for name, value in relay.items()) and "IRONBURST_LEASE" in entry


def document(entry, programs=("*",), relay=None):
    """What the centre gets of a line of journalctl's JSON; None: it isn't sent."""
    stamp = entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry["__REALTIME_TIMESTAMP"]
    priority, message = text_of(entry.get("PRIORITY")) or "6", text_of(entry.get("MESSAGE"))
    made = {
        "@timestamp": at(text_of(stamp)),
        "host": text_of(entry.get("_HOSTNAME")).partition(".")[0],
        "program": text_of(entry.get("SYSLOG_IDENTIFIER")) or text_of(entry.get("_COMM")),
        "pid": text_of(entry.get("_PID")),
        "unit": text_of(entry.get("_SYSTEMD_UNIT")),
        "severity": SEVERITIES[int(priority)] if re.fullmatch("[0-7]", priority) else "info",
        "id": hashlib.sha256(entry["__CURSOR"].encode()).hexdigest()[:32],
    }
    if is_relayed(entry, relay):
        its = {name: text_of(entry.get(f"IRONBURST_{name}")) for name in RELAYED}
        message = message[len(f"{its['NODE']} {its['PROGRAM']}: ") :]
        made |= {"@timestamp": its["TIME"], "host": its["NODE"], "lease": its["LEASE"], "program": its["PROGRAM"]}
        made |= {"pid": its["PID"], "severity": its["SEVERITY"], "unit": "", "id": its["ID"]}
    if not message or not any(fnmatch.fnmatchcase(made["program"], pattern) for pattern in programs):
        return None
    return made | {"message": redacted(message)[:LONGEST]}


class Centre:
    """The way to it, by its settings."""

    def __init__(self, settings, password=""):
        self.url, self.index = urlsplit(settings["url"]), settings.get("index", "ironburst-logs")
        self.headers = {"Content-Type": "application/x-ndjson"}
        if settings.get("user"):
            signed = base64.b64encode(f"{settings['user']}:{password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {signed}"
        self.context = None
        if self.url.scheme == "https":
            self.context = ssl.create_default_context(cafile=settings.get("ca") or None)
        self.connection = None

    def ask(self, method, path, body=b""):
        """(HTTP status, answer). Raises AwayError."""
        used = self.connection is not None  # the other side may have closed it meanwhile: that is no news
        try:
            self.connection = self.connection or self.connect()
            self.connection.request(method, path, body, self.headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read(32_000_000)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if used:
                return self.ask(method, path, body)
            raise AwayError(f"{self.url.netloc} gives no answer: {error or type(error).__name__}") from None

    def connect(self):
        """A new connection."""
        host, port = self.url.hostname, self.url.port
        if self.context:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self.context)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)

    def close(self):
        """The next question makes a new connection."""
        if self.connection:
            self.connection.close()
        self.connection = None

    def send(self, documents):
        """Until all are there, or refused for what they are: how many of these. Raises AwayError."""
        body = "".join(f"{self.action(made)}\n{json.dumps(made)}\n" for made in documents)
        target = self.url.path + (f"?{self.url.query}" if self.url.query else "")
        status, answer = self.ask("POST", target, body.encode())
        if status in (400, 413):  # one of them is at fault
            half = len(documents) // 2
            return self.send(documents[:half]) + self.send(documents[half:]) if half else 1
        if status not in (200, 201, 204):
            raise AwayError(
                f"{self.url.netloc} refuses: HTTP {status}: {answer[:300].decode(errors='replace').strip()}"
            )
        statuses = self.statuses(answer) if answer.strip() else []
        if statuses and len(statuses) != len(documents):
            raise AwayError(f"{self.url.netloc} answers for {len(statuses)} lines of {len(documents)}")
        again = [made for made, its in zip(documents, statuses) if its == 429 or its >= 500]
        if again:
            raise AwayError(f"{self.url.netloc} takes {len(documents) - len(again)} lines of {len(documents)}")
        return sum(400 <= its < 500 and its != 409 for its in statuses)  # 409: it is there already

    def statuses(self, answer):
        """Of each line. Raises AwayError."""
        try:
            items = json.loads(answer).get("items", [])
            return [int(its.get("status", 200)) for item in items for its in item.values()]
        except (ValueError, AttributeError, TypeError):
            raise AwayError(f"{self.url.netloc} doesn't answer as Elasticsearch does") from None

    def action(self, made):
        """The line before a document's."""
        day = made["@timestamp"][:10].replace("-", ".")
        return json.dumps({"create": {"_index": f"{self.index}-{day}", "_id": made["id"]}})

    def prepare(self):
        """The mapping of days that come; why it is refused, or empty. Raises AwayError."""
        template = {"index_patterns": [f"{self.index}-*"], "template": TEMPLATE}
        headers, self.headers = self.headers, self.headers | {"Content-Type": "application/json"}
        try:
            status, answer = self.ask("PUT", f"/_index_template/{self.index}", json.dumps(template).encode())
        finally:
            self.headers = headers
        refused = f"{self.url.netloc} refuses the template of indices: HTTP {status}: {answer[:300]!r}"
        if status not in (200, 201, 400, 403):
            raise AwayError(refused)
        return refused if status in (400, 403) else ""

    def tidy(self, days, today):
        """Delete the indices of days before the last so many; their names. Raises AwayError."""
        status, answer = self.ask("GET", f"/_cat/indices/{self.index}-*?h=index&format=json")
        if status != 200:
            raise AwayError(f"{self.url.netloc} doesn't list its indices: HTTP {status}")
        old = [name for name in sorted(each["index"] for each in json.loads(answer)) if self.day(name) is not None]
        old = [name for name in old if self.day(name) < today - timedelta(days=days)]
        for name in old:
            status, _ = self.ask("DELETE", f"/{name}")
            if status not in (200, 404):
                raise AwayError(f"{self.url.netloc} doesn't delete {name}: HTTP {status}")
        return old

    def day(self, name):
        """Of an index; None: it isn't ours."""
        try:
            return datetime.strptime(name, f"{self.index}-%Y.%m.%d").date()
        except ValueError:
            return None


class Journal:
    """Entries as they come, by journalctl; (entry, cursor) in a queue of bounded length."""

    def __init__(self, options, cursor):
        where = [f"--after-cursor={cursor}"] if cursor else ["--boot"]
        fields = ",".join([*FIELDS, *(f"IRONBURST_{name}" for name in RELAYED)])
        argv = ["journalctl", "--follow", "--no-tail", "--all", "--quiet", "--output=json", f"--output-fields={fields}"]
        self.process = subprocess.Popen([*argv, *where, *options], stdout=subprocess.PIPE)
        self.entries = queue.Queue(2 * LINES)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Until journalctl ends."""
        for line in self.process.stdout:
            try:
                entry = json.loads(line)
                entry["__CURSOR"], entry["__REALTIME_TIMESTAMP"]
            except (ValueError, LookupError):
                continue
            self.entries.put(entry)
        self.entries.put(None)

    def batch(self, wait_s):
        """Entries that are there; [] after that time without one. Raises EOFError where journalctl has ended."""
        found, size, end = [], 0, time.monotonic() + wait_s
        while len(found) < LINES and size < BYTES:
            try:
                entry = self.entries.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                break
            if entry is None:
                if not found:
                    raise EOFError
                self.entries.put(None)
                break
            if not found:
                end = time.monotonic() + GATHER_S
            found.append(entry)
            size += len(text_of(entry.get("MESSAGE")))
        return found


class Sender:
    """The program."""

    def __init__(self, settings, state, password=""):
        self.settings, self.centre = settings, Centre(settings, password)
        self.cursor = state / "cursor"
        self.stop_s, self.told_s, self.refused = None, -SAID_S, 0

    def stop(self, *_):
        """As soon as the last lines are sent, or in a few seconds."""
        self.stop_s = self.stop_s or time.monotonic() + STOP_S

    def over(self):
        """It should have stopped by now."""
        return self.stop_s is not None and time.monotonic() > self.stop_s

    def run(self):
        """Until it is stopped."""
        prepared = not self.settings.get("template")
        if self.settings.get("days"):
            threading.Thread(target=self.tidy, daemon=True).start()
        journal = Journal(self.settings.get("journal", []), self.cursor.read_text() if self.cursor.exists() else "")
        try:
            while not self.over():
                entries = journal.batch(0.2 if self.stop_s else 1.0)
                if entries and not prepared:
                    prepared = self.until_taken(self.prepare)
                if entries and self.until_taken(self.send, entries):
                    self.note(entries[-1]["__CURSOR"])
                if not entries and self.stop_s:
                    break
        finally:
            journal.process.kill()

    def prepare(self):
        """The indices' mapping; whoever may only write gets it set by somebody else."""
        if refused := self.centre.prepare():
            self.tell(refused)

    def send(self, entries):
        """One batch."""
        programs = self.settings.get("programs") or ["*"]
        made = [document(entry, programs, self.settings.get("relay")) for entry in entries]
        self.refused += self.centre.send(sent) if (sent := [each for each in made if each]) else 0
        if self.refused and self.tell(
            f"{self.refused} lines were refused by the centre for what they are, and left out"
        ):
            self.refused = 0

    def until_taken(self, action, *given):
        """Again and again; False: it should stop."""
        wait_s = RETRY_S[0]
        while not self.over():
            try:
                action(*given)
            except AwayError as error:
                self.tell(f"{error}; the lines stay in the journal, and are sent later")
                time.sleep(min(wait_s, max(0.1, self.stop_s - time.monotonic())) if self.stop_s else wait_s)
                wait_s = min(2 * wait_s, RETRY_S[1])
            else:
                return True
        return False

    def note(self, cursor):
        """The lines up to there are at the centre."""
        new = self.cursor.with_suffix(".new")
        new.write_text(cursor)
        new.replace(self.cursor)

    def tell(self, text):
        """Not again and again; whether it was told."""
        if time.monotonic() - self.told_s < SAID_S:
            return False
        print(f"ironburst-logs: {text}", file=sys.stderr, flush=True)
        self.told_s = time.monotonic()
        return True

    def tidy(self):
        """Old days, once an hour, by a connection of its own."""
        centre = Centre(self.settings)
        centre.headers = self.centre.headers
        while True:
            try:
                if gone := centre.tidy(self.settings["days"], datetime.now(timezone.utc).date()):
                    print(
                        f"ironburst-logs: deleted, older than {self.settings['days']} days: {', '.join(gone)}",
                        flush=True,
                    )
            except AwayError as error:
                self.tell(str(error))
            time.sleep(TIDY_S)


def main():
    """The exit status: 1, journalctl has ended."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    kept = Path(os.environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")) / "password"
    password = kept.read_text().strip() if settings.get("user") else ""
    sender = Sender(settings, Path(os.environ["STATE_DIRECTORY"]), password)
    signal.signal(signal.SIGTERM, sender.stop)
    try:
        sender.run()
    except EOFError:
        sys.exit("ironburst-logs: journalctl has ended")


if __name__ == "__main__":
    main()
