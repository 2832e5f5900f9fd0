"""From a path and an environment to `Settings`, or every fault at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.bundled import default_models
from cluster_gw.settings.cap_variables import read_caps
from cluster_gw.settings.checking import Checker
from cluster_gw.settings.document import MAX_BYTES, read_document
from cluster_gw.settings.environment import apply_environment, read_weights
from cluster_gw.settings.expand import Expander, why
from cluster_gw.settings.faults import Faults
from cluster_gw.settings.master_key import read_master_keys
from cluster_gw.settings.origins import name_origins
from cluster_gw.settings.pool import ModelSettings, Settings
from cluster_gw.settings.references import check_pool
from cluster_gw.settings.rules import Runnable, check_gateway
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.sections import RedisSettings
from cluster_gw.settings.shared import Source, read_source
from cluster_gw.settings.ways import check_ways
from cluster_gw.settings.written import Document

DEFAULT_PATH: Final = "cluster-gw.yaml"
PATH_VARIABLE: Final = "GW_CONFIG"
FILE: Final = "file:"
REDIS_VARIABLES: Final = "GW_REDIS__"
THIS_VERSION: Final = Runnable()
NO_FILE: Final = f"does not exist; name one with --config or {PATH_VARIABLE}"


def _root() -> inspect.StructType:
    root = inspect.type_info(Settings)
    if not isinstance(root, inspect.StructType):
        raise TypeError("Settings is a struct")
    return root


ROOT: Final = _root()


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A usable configuration.

    Attributes:
        settings: what it says.
        warnings: one line per thing an operator should see.
        source: what it was made from, for processes that must see exactly the same.
        files: every file it was read from, secrets included: what a watch has to look at.
        master_keys: each as 64 hexadecimal digits: the present one, then the one before it.
    """

    settings: Settings
    warnings: tuple[str, ...]
    source: Source
    files: tuple[Path, ...] = ()
    master_keys: tuple[Secret, ...] = ()

    @property
    def master_key(self) -> Secret | None:
        """The present one; None where none is set."""
        return self.master_keys[0] if self.master_keys else None


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was written, references resolved and environment applied, not checked yet.

    Attributes:
        plain: its sections as plain values; not to be changed.
        text: the bytes it was read from.
        files: content of the files it names; None reads them from the disk.
        faults: what is wrong with it already.
        warnings: what an operator should see of it already.
        environ: where secrets and overrides are looked up.
        named: content of the files it is made of besides.
        version: of the file since its group started, from 1.
    """

    plain: dict[str, Any]
    text: bytes
    files: Mapping[str, bytes] | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    environ: Mapping[str, str]
    named: Mapping[str, bytes]
    version: int = 1

    def __repr__(self) -> str:
        return "Base(***)"


def config_path(option: str | None, environ: Mapping[str, str]) -> Path:
    """Tell which file to read: the option, else `GW_CONFIG`, else `./cluster-gw.yaml`."""
    return Path(option or environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def load(path: Path | str, environ: Mapping[str, str], runnable: Runnable = THIS_VERSION) -> Loaded:
    """Read, check and resolve the configuration at `path`.

    Args:
        path: a YAML or JSON file.
        environ: where references and overrides are looked up.
        runnable: what this version can do; anything else is refused.

    Raises:
        ConfigInvalidError: it cannot be used; the exception holds every fault, none with a secret.
    """
    loaded = load_bytes(_read(Path(path)), environ, runnable)
    return msgspec.structs.replace(loaded, files=(Path(path), *loaded.files))


def load_shared(fd: int, environ: Mapping[str, str]) -> Loaded:
    """Load what another process has accepted and shared; no file is read.

    Args:
        fd: see `shared.write_source`.
        environ: the environment the other process saw.

    Raises:
        ConfigInvalidError: it cannot be used.
    """
    base = read_shared(fd, environ)
    return load_plain(base.plain, base)


def read_shared(fd: int, environ: Mapping[str, str]) -> Base:
    """Read what another process has accepted and shared, without checking it again.

    Raises:
        ConfigInvalidError: it is no document.
    """
    source = read_source(fd)
    base = read_base(source.text, environ, source.files)
    return msgspec.structs.replace(base, version=source.version)


def load_redis(path: Path | str, environ: Mapping[str, str]) -> RedisSettings:
    """Read the `redis` section alone: tools on Redis need no provider's key.

    Raises:
        ConfigInvalidError: the file or this section of it cannot be used.
    """
    faults = Faults()
    document = read_document(_read(Path(path)), faults)
    section = {name: value for name, value in document.items() if name == "redis"}
    of_redis = {name: value for name, value in environ.items() if name.startswith(REDIS_VARIABLES)}
    base = _base(section, b"", environ, of_redis, None, faults)
    return load_plain(base.plain, base).settings.redis


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = NO_FILE if is_missing else f"cannot be read{why(error)}"
        raise ConfigInvalidError([f"configuration: file {path} {reason}"]) from None


def load_bytes(
    data: bytes,
    environ: Mapping[str, str],
    runnable: Runnable = THIS_VERSION,
    files: Mapping[str, bytes] | None = None,
) -> Loaded:
    """Check and resolve the text of a configuration; see `load`.

    Args:
        data: YAML or JSON.
        environ: where references and overrides are looked up.
        runnable: what this version can do.
        files: content of the files it names; None reads them from the disk.

    Raises:
        ConfigInvalidError: it cannot be used.
    """
    base = read_base(data, environ, files)
    return load_plain(base.plain, base, runnable)


def read_base(
    data: bytes, environ: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> Base:
    """Read the text of a configuration as far as no type has to be known; arguments as above.

    Raises:
        ConfigInvalidError: it is no document at all.
    """
    faults = Faults()
    document = read_document(data, faults)
    if not document and not faults.lines:
        faults.add("", "the file is empty: there is nothing to serve")
    return _base(document, data, environ, environ, files, faults)


def load_plain(plain: dict[str, Any], base: Base, runnable: Runnable = THIS_VERSION) -> Loaded:
    """Check and resolve a document.

    Args:
        plain: that of `base`, or one made of it.
        base: where its secrets come from.
        runnable: what this version can do.

    Raises:
        ConfigInvalidError: it cannot be used.
    """
    faults = Faults()
    faults.lines, faults.warnings = list(base.faults), list(base.warnings)
    expander = Expander(base.environ, faults, base.files)
    master_keys = read_master_keys(base.environ, expander, faults)
    settings = _check(plain, expander, faults, runnable)
    models = read_weights(base.environ, settings.models, faults)
    providers = read_caps(base.environ, settings.providers, faults)
    contents = {**base.named, **expander.contents}
    return Loaded(
        settings=msgspec.structs.replace(settings, models=models, providers=providers),
        warnings=tuple(faults.warnings),
        source=Source(text=base.text, files=contents),
        files=tuple(Path(name) for name in contents),
        master_keys=master_keys,
    )


def _base(
    document: dict[str, Any],
    data: bytes,
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
    files: Mapping[str, bytes] | None,
    faults: Faults,
) -> Base:
    if faults.lines:  # what could be read of a broken file would only look broken, too
        raise ConfigInvalidError(faults.lines)
    expander = Expander(environ, faults, files)
    plain: dict[str, Any] = expander.expand(document, "")
    _read_catalog(plain, expander, faults)
    apply_environment(plain, overrides, ROOT, faults, expander.secret)
    return Base(
        plain=plain,
        text=data,
        files=files,
        faults=tuple(faults.lines),
        warnings=tuple(faults.warnings),
        environ=environ,
        named=expander.contents,
    )


def _read_catalog(plain: dict[str, Any], expander: Expander, faults: Faults) -> None:
    """Put the models of the document that `catalog` names in its place."""
    named = plain.get("catalog")
    if not isinstance(named, str) or not named.startswith(FILE):
        return
    data = expander.content(named.removeprefix(FILE), "catalog", MAX_BYTES)
    own = Faults()
    document = {} if data is None else read_document(data, own)
    faults.lines += [f"catalog: {line.partition(': ')[2]}" for line in own.lines]
    models = document.get("models")
    is_whole = isinstance(models, list) and len(document) == 1
    if data is not None and not own.lines and not is_whole:
        faults.add("catalog", "the file must hold a list of `models`, and nothing else")
    plain["catalog"] = models if is_whole else []


def _check(
    plain: dict[str, Any], expander: Expander, faults: Faults, runnable: Runnable
) -> Settings:
    checker = Checker(faults, expander.secret)
    settings = msgspec.convert(checker.check(plain, ROOT, ""), Settings)
    settings = msgspec.structs.replace(settings, models=_all_models(settings))
    check_pool(settings, Document(plain=plain, kept=checker.kept), runnable, faults)
    check_gateway(settings, faults)
    check_ways(settings, faults)
    if faults.lines:
        name_origins(plain, checker.secrets, faults)
        raise ConfigInvalidError(faults.lines)
    return settings


def _all_models(settings: Settings) -> tuple[ModelSettings, ...]:
    """Add the models of presets whose provider declares none of its own."""
    declared = {model.provider for model in settings.models}
    added: list[ModelSettings] = []
    for name, provider in settings.providers.items():
        if name not in declared:
            added.extend(default_models(name, provider.preset, settings.catalog))
    return (*settings.models, *added)
