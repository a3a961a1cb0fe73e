"""Load the certificate of the service, and say at the start what is wrong with it."""

import ssl
from contextlib import suppress
from pathlib import Path

from db_dedup.config import ServerSettings
from db_dedup.errors import ConfigError


def require_certificate(server: ServerSettings) -> None:
    """Check that clients can connect with the certificate of the settings, if there is one.

    Raises:
        ConfigError: a file cannot be read, the two do not belong together, or the certificate is not valid
            now.
    """
    if server.certificate is None or server.certificate_key is None:
        return
    for path in (server.certificate, server.certificate_key):
        _require_readable(path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a function for the password, OpenSSL would ask for it on the terminal and wait.
        serving.load_cert_chain(server.certificate, server.certificate_key, _refuse_password)
    except _EncryptedKeyError:
        raise ConfigError(
            "the key {key} is encrypted: store it without a password, readable by this service alone",
            key=server.certificate_key,
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                "the key {key} does not belong to the certificate {certificate}",
                key=server.certificate_key,
                certificate=server.certificate,
            ) from None
        raise ConfigError(
            "cannot use the certificate {certificate} with the key {key}: both have to be PEM files, the "
            "certificate of the service before those of its issuers ({reason})",
            certificate=server.certificate,
            key=server.certificate_key,
            reason=error.reason or type(error).__name__,
        ) from None
    _require_valid_now(serving, server.certificate)


class _EncryptedKeyError(Exception):
    """The key needs a password."""


def _refuse_password() -> str:
    raise _EncryptedKeyError


def _require_readable(path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except OSError as error:
        raise ConfigError(
            "cannot read {path}, which [server] names: {reason}", path=path, reason=error.strerror or error
        ) from None


def _require_valid_now(serving: ssl.SSLContext, certificate: str) -> None:
    """Check the dates of a certificate: a client that trusts exactly this one connects, in memory."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        serving.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(3):
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            "clients will not accept the certificate {certificate}: {reason}",
            certificate=certificate,
            reason=error.verify_message,
        ) from None
