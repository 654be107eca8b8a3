"""Where the processes of `lapwing learn --hosts` meet, and how this one connects to the others."""

import importlib
import re
import socket
from dataclasses import dataclass
from functools import partial
from typing import Any

from lapwing.errors import ConfigError, HostsError

SECONDS_OF_SILENCE = 100
"""After so long a process that says nothing is given up; one that ends is noticed at once."""
SECONDS_TO_END = 7 * 24 * 3600
"""The others wait so long while the first one evaluates and draws."""
MOST_PORTS = 65_535


@dataclass(frozen=True)
class Place:
    """Which process of which job this is; None where the environment is to say."""

    address: str | None = None
    number: int | None = None
    count: int | None = None
    seconds: int = 60
    """How long the processes wait for each other."""


def read_place(text: str) -> Place:
    """The place that `--hosts` names.

    Example:
        >>> read_place("10.0.0.5:1234,0/4")
        Place(address='10.0.0.5:1234', number=0, count=4, seconds=60)
    """
    if text == "auto":
        return Place()
    found = re.fullmatch(r"([^\s:]+|\[[\da-fA-F:.]+\]):(\d{1,5}),(\d+)/(\d+)", text)
    if found is None or int(found[3]) >= int(found[4]) or not 0 < int(found[2]) <= MOST_PORTS:
        raise ConfigError(
            f"hosts must be auto or ADDRESS:PORT,NUMBER/COUNT, with a port of 1 to {MOST_PORTS} and numbers "
            f"from 0, such as 10.0.0.5:1234,0/4 or [::1]:1234,0/4, not {text!r}"
        )
    return Place(f"{found[1]}:{found[2]}", int(found[3]), int(found[4]))


def connect(place: Place) -> None:
    """Connect this process to the others."""
    import jax
    from jax._src.distributed import global_state  # the coordinator that `auto` found is nowhere else

    if place.address:
        address_towards(place.address)  # refuses one that leads nowhere before the others are waited for
        if place.number == 0:
            _check_free(place.address)
    try:
        jax.distributed.initialize(
            place.address,
            place.count,
            place.number,
            initialization_timeout=place.seconds,
            heartbeat_timeout_seconds=SECONDS_OF_SILENCE,
            shutdown_timeout_seconds=SECONDS_TO_END,
        )
    except ValueError as error:
        raise ConfigError(
            f"hosts=auto found no job in the environment, such as that of SLURM ({error}); name the place: "
            "--hosts ADDRESS:PORT,NUMBER/COUNT"
        ) from error
    if coordinator := place.address or global_state.coordinator_address:
        _listen_towards(coordinator)


def _check_free(address: str) -> None:
    """Refuse a port that is taken, also by another job, with which JAX would share it."""
    _, port = _split(address)
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise HostsError(
            f"process 0 cannot listen on port {port} of this machine ({error.strerror}); choose another port "
            "for all processes"
        ) from error


def _listen_towards(coordinator: str) -> None:
    """Let other processes reach this one at the address from which it reaches the coordinator.

    Otherwise it is the address of this machine's own name, which is a loopback address on many (127.0.1.1 on
    Debian's), where no other machine comes to. JAX has no setting for it, so the function that makes its
    collectives is given the address.
    """
    library: Any = importlib.import_module("jaxlib._jax")
    library.make_gloo_tcp_collectives = partial(
        library.make_gloo_tcp_collectives, hostname=address_towards(coordinator)
    )


def address_towards(coordinator: str) -> str:
    """The address of this machine on the way to `HOST:PORT`; nothing is sent.

    Example:
        >>> address_towards("127.0.0.1:1234")
        '127.0.0.1'
    """
    host, port = _split(coordinator)
    try:
        family, kind, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(there)
            return probe.getsockname()[0]
    except OSError as error:
        raise HostsError(
            f"no way leads to {host} from this machine ({error.strerror}); name process 0 by an address that "
            "all processes reach"
        ) from error


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
