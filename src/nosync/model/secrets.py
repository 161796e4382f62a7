"""Passwords, keys and signatures are not for showing. Pure.

Every message of an error passes through here (see `errors`), and every address that is recorded or shown.
"""

import re

HIDDEN = "***"
# A password before the host of an address. It may hold a slash, as keys of S3 do: better to hide too much than too little.
_USER = re.compile(r"(?<=://)[^\s\"'@]*:[^\s\"']*@")
_WORD = r"[\w.%-]*(?:passw(?:or)?d|pwd|secret|signature|credential|token|access_?key|\bsig)[\w.%-]*"
_NAMED = re.compile(rf"(?i)({_WORD}[\"']?\s*)(=\s*[\"']?[^\s,;&\"')]+|[:=]\s*(?:\"[^\"]*\"|'[^']*'))")


def redacted(text: str) -> str:
    """The text without what stands in it for a password, a key or a signature."""
    if "://" not in text and "=" not in text and ":" not in text:
        return text
    return _NAMED.sub(rf"\1={HIDDEN}", _USER.sub(f"{HIDDEN}@", text))
