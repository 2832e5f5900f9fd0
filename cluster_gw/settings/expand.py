"""`${VAR}` in any text, `env:NAME` and `file:/path` for secrets: the only doors to the outside."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cluster_gw.settings.faults import Expanded, Faults, at_index, at_name
from cluster_gw.settings.secret import Secret

MAX_SECRET_BYTES: Final = 65_536
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def why(error: Exception) -> str:
    """Tell what the system says of a file, in parentheses; nothing where it says nothing."""
    told = error.strerror if isinstance(error, OSError) else None
    return f" ({told})" if told else ""


class Unset:
    """Stands where a value could not be had; its fault is already noted."""


UNSET: Final = Unset()


class Expander:
    """Resolves references against one environment and remembers the files it read.

    Args:
        environ: the environment.
        faults: what cannot be resolved is added here, without any value.
        files: content of the files a configuration may name; None reads them from the disk.

    Attributes:
        contents: what every file that was named holds.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        faults: Faults,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._environ = environ
        self._faults = faults
        self._files = files
        self.contents: dict[str, bytes] = {}

    def expand(self, value: Any, path: str) -> Any:
        """Give `value` with every reference in its texts replaced; `$${` stands for `${`."""
        if isinstance(value, dict):
            return {name: self.expand(item, at_name(path, name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.expand(item, at_index(path, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return self._text(value, path)
        return value

    def secret(self, value: str, path: str) -> Secret | Unset:
        """Give the secret that `env:NAME`, `file:/path` or the text itself stands for."""
        if value.startswith("env:"):
            text = self._variable(value.removeprefix("env:"), path)
        elif value.startswith("file:"):
            text = self._file(Path(value.removeprefix("file:")), path)
        else:
            text = value
        if text is None:
            return UNSET
        if not text:
            self._faults.add(path, "the secret is empty")
            return UNSET
        if not text.isprintable() or not text.isascii():
            self._faults.add(path, "the secret holds characters that no credential has")
            return UNSET
        return Secret(text)

    def content(self, name: str, path: str, most_bytes: int) -> bytes | None:
        """Give what a file holds that is no secret, and a byte more than `most_bytes` at most.

        None when it cannot be read, with a fault.
        """
        file = Path(name)
        if not file.is_absolute():
            self._faults.add(path, "file: must name an absolute path")
            return None
        try:
            data = self._read(file, most_bytes)
        except (OSError, ValueError) as error:
            self._faults.add(path, f"file {ascii(name)[1:-1]} cannot be read{why(error)}")
            return None
        self.contents[str(file)] = data
        return data

    def _text(self, text: str, path: str) -> Expanded | Unset:
        parts: list[str] = []
        names: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            part = "${" if match[0] == "$${" else self._reference(match[1], path)
            if part is None:
                return UNSET
            parts.append(part)
            named = _VARIABLE.fullmatch(match[1] or "")
            names += [named[1]] if named else []
        return Expanded("".join([*parts, text[end:]]), names)

    def _reference(self, inside: str | None, path: str) -> str | None:
        match = _VARIABLE.fullmatch(inside or "")
        if match is None:
            self._faults.add(path, "a reference must read ${NAME} or ${NAME:-default}")
            return None
        if match[2] is not None:
            if "{" in match[2]:  # the reference would end at the first brace that closes
                self._faults.add(path, "a default cannot hold a brace or another reference")
                return None
            return self._environ.get(match[1]) or match[2]
        return self._variable(match[1], path)

    def _variable(self, name: str, path: str) -> str | None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self._faults.add(path, "env: must name an environment variable")
            return None
        value = self._environ.get(name)
        if value is None:
            self._faults.add(path, f"environment variable {name} is not set")
        return value

    def _file(self, file: Path, path: str) -> str | None:
        shown = ascii(str(file))[1:-1]  # on one line
        if not file.is_absolute():
            self._faults.add(path, "file: must name an absolute path")
            return None
        try:
            str(file).encode()  # what was read is shared with workers under this name
            data = self._read(file, MAX_SECRET_BYTES)
            text = data.decode().rstrip("\r\n")
        except (OSError, ValueError) as error:  # not UTF-8, or a name that no file can have
            self._faults.add(path, f"file {shown} cannot be read as text{why(error)}")
            return None
        if len(data) > MAX_SECRET_BYTES:
            self._faults.add(path, f"file {shown} is larger than {MAX_SECRET_BYTES} bytes")
            return None
        self.contents[str(file)] = data
        return text

    def _read(self, file: Path, most_bytes: int) -> bytes:
        if self._files is None:
            with file.open("rb") as stream:
                return stream.read(most_bytes + 1)
        if str(file) not in self._files:
            raise FileNotFoundError(file)
        return self._files[str(file)]
