"""The certificate for HTTPS, tried before anything is promised."""

import ssl
from pathlib import Path

from discreet.errors import ParameterError
from discreet.service._configuration import Configuration


def require_certificate(configuration: Configuration) -> None:
    """Refuse a certificate or a key that cannot be served with.

    Args:
        configuration: names both files, or none.

    Raises:
        ParameterError: one of them cannot be read, or they do not go together.
    """
    certificate, key = configuration.tls_certificate, configuration.tls_key
    if certificate is None or key is None:
        return
    for name, file in (("tls_certificate", certificate), ("tls_key", key)):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise ParameterError(name, f"{file} cannot be read: {error.strerror}") from None
    try:
        # A key with a password would be asked for on a terminal that nobody sits at.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):
        raise ParameterError(
            "tls_certificate",
            f"{certificate} cannot be served with the key {key}; give PEM files that "
            "belong together, and a key without a password",
        ) from None
