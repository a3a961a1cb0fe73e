"""The settings of the HTTP service, `[server]` in `dedup.toml`, and what they must say to be safe."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import Field, ValidationError, model_validator

from db_dedup.config.fields import Count, Flag, Frozen, Name, Words, check_known
from db_dedup.errors import ConfigError
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

_LISTS: Final = ("hosts", "origins", "proxies")
_FILES: Final = ("tokens", "certificate", "certificate_key")

Port = Annotated[int, Field(ge=0, le=65535, description="a port, from 0 to 65535; 0 takes a free one")]


class ServerSettings(Frozen):
    """Where the HTTP service listens, whom it answers, and its limits."""

    host: Name = "127.0.0.1"
    port: Port = 8765
    tokens: Name | None = None
    hosts: Words = ()
    origins: Words = ()
    proxies: Words = ()
    certificate: Name | None = None
    certificate_key: Name | None = None
    read_only: Flag = False
    max_body: Count = 1_000_000
    read_seconds: Count = 10
    answer_seconds: Count = 30
    threads: Count = 8
    max_waiting: Count = 64

    @model_validator(mode="after")
    def _check_proxies(self) -> Self:
        for given in self.proxies:
            try:
                is_limited = ip_network(given, strict=False).prefixlen > 0
            except ValueError:
                is_limited = False
            if not is_limited:
                raise ValueError(
                    Phrase(
                        "proxies: {given} is not an IP address, such as 10.0.0.5, or a network, such as "
                        "10.89.0.0/24; a name is not looked up",
                        given=repr(given),
                    )
                )
        return self

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks that the declared proxies are in; an address is a network of its own."""
        return tuple(ip_network(given, strict=False) for given in self.proxies)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service: it listens on loopback, by loopback's names."""
        return is_loopback(self.host) and not set(self.hosts).difference(LOOPBACK_NAMES)

    def require_safe(self, *, has_tokens: bool) -> None:
        """Check that other machines need a token, and that the token is encrypted on its way.

        Raises:
            ConfigError: with what is missing.
        """
        if (self.certificate is None) != (self.certificate_key is None):
            raise ConfigError("certificate and certificate_key in [server] belong together: set both")
        if self.is_local:
            return
        if not has_tokens:
            raise ConfigError(
                "other machines can reach {host}, so clients need tokens: `db-dedup serve --new-token "
                "read,check` makes one; name their file by tokens in [server], or set "
                "DB_DEDUP_SERVER_TOKEN_DIGESTS",
                host=", ".join((self.host, *self.hosts)),
            )
        if not (is_loopback(self.host) or self.certificate or self.proxies):
            raise ConfigError(
                "on {host} tokens would travel unencrypted: set certificate and certificate_key in [server], "
                "or the addresses of your TLS proxy in proxies",
                host=self.host,
            )


def is_loopback(host: str) -> bool:
    """Return whether the address can be reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def server_settings(section: Mapping[str, Any], path: Path) -> ServerSettings:
    """Return the settings of `[server]`; names of files are relative to the settings file.

    Args:
        section: as TOML gives it.
        path: the settings file.

    Raises:
        ConfigError: a setting is unknown or has a wrong value.
    """
    check_known(Phrase("setting in [server]"), section, set(ServerSettings.model_fields))
    values = dict(section)
    for name in _LISTS:
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    for name in _FILES:
        if isinstance(values.get(name), str):
            values[name] = str(path.parent / values[name])
    try:
        return ServerSettings.model_validate(values)
    except ValidationError as error:
        fault = first_fault(error, ServerSettings)
        raise ConfigError("{path}: [server]: {fault}", path=path, fault=fault) from None
