"""The passphrase secrets provider: AES-256-GCM with a PBKDF2 key, in the text forms of Pulumi's file backend."""

import base64
import functools
import hashlib
import os
import secrets as random
from pathlib import Path

from lab.engine.errors import EngineError

ROUNDS = 1_000_000


@functools.lru_cache(maxsize=8)
def _key(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, ROUNDS, 32)


def passphrase_from_environment(env=os.environ) -> str:
    """PULUMI_CONFIG_PASSPHRASE (may be empty) or the content of PULUMI_CONFIG_PASSPHRASE_FILE."""
    if "PULUMI_CONFIG_PASSPHRASE" in env:
        return env["PULUMI_CONFIG_PASSPHRASE"]
    if path := env.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise EngineError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {path} cannot be read: {error.strerror}") from None
    raise EngineError("no passphrase: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE")


class Crypter:
    """Encrypts and decrypts with the passphrase and one `encryptionsalt`. An unchanged text keeps its ciphertext."""

    def __init__(self, passphrase: str, encryption_salt: str):
        self.encryption_salt = encryption_salt
        try:
            version, salt, proof = encryption_salt.split(":", 2)
            raw_salt = base64.b64decode(salt, validate=True)
        except ValueError:
            raise EngineError(
                f"encryptionsalt {encryption_salt!r} is not of the form v1:<salt>:v1:<nonce>:<text>"
            ) from None
        if version != "v1":
            raise EngineError(f"encryptionsalt has the unknown version {version!r}; only v1 can be read")
        self._cipher = _cipher(_key(passphrase, raw_salt))
        self._known: dict[str, str] = {}
        try:
            proven = self.decrypt(proof) == "pulumi"
        except EngineError:
            proven = False
        if not proven:
            raise EngineError("incorrect passphrase: PULUMI_CONFIG_PASSPHRASE does not fit the stack's encryptionsalt")

    @classmethod
    def create(cls, passphrase: str) -> "Crypter":
        """A crypter with a new random salt."""
        salt = random.token_bytes(8)
        proof = _encrypt(_cipher(_key(passphrase, salt)), "pulumi")
        return cls(passphrase, f"v1:{base64.b64encode(salt).decode()}:{proof}")

    def encrypt(self, text: str) -> str:
        if text not in self._known:
            self._known[text] = _encrypt(self._cipher, text)
        return self._known[text]

    def decrypt(self, ciphertext: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            version, nonce, data = ciphertext.split(":")
            if version != "v1":
                raise ValueError(version)
            text = self._cipher.decrypt(base64.b64decode(nonce), base64.b64decode(data), None).decode()
        except (ValueError, InvalidTag):
            raise EngineError(
                "a secret cannot be decrypted: the passphrase or the salt is not the one it was made with"
            ) from None
        self._known[text] = ciphertext
        return text


def _cipher(key: bytes):
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _encrypt(cipher, text: str) -> str:
    nonce = random.token_bytes(12)
    data = cipher.encrypt(nonce, text.encode(), None)
    return f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(data).decode()}"
