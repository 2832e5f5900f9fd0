"""Whether a text looks like a task about code; a soft hint that only shifts weights."""

import re
from typing import Final

LOOK_CHARACTERS: Final = 2000  # a longer text shows what it is about in its beginning
FENCE: Final = "```"
TRACE: Final = "Traceback (most recent call last)"
STARTS: Final = (
    *("def ", "class ", "async def ", "#include <", '#include "', "func ", "fn ", "function "),
    *("if (", "for (", "while (", "INSERT INTO ", "CREATE TABLE ", "@@ -", "<?php", "</", "@"),
)
"""How a line of code begins; a sentence may, too, so its end has to agree."""
ENDS: Final = (";", "{", "}", ":", ")", "(", ",", "]", ">", "`", '"', "'", "\\")
FILE_NAME: Final = re.compile(r"\.(?:py|js|ts|tsx|go|rs|java|cpp|cs|rb|php|sql|sh|html|css)\b")


def looks_like_code(text: str) -> bool:
    """Tell whether a text has a code block, a name of a source file or a line of code."""
    if FENCE in text:
        return True
    head = text[:LOOK_CHARACTERS]
    if FILE_NAME.search(head) or TRACE in head:
        return True
    for line in head.split("\n"):
        bare = line.strip()
        if bare.endswith((";", "{")) or (bare.startswith(STARTS) and bare.endswith(ENDS)):
            return True
    return False
